// Package export reads the archives that torch.export.save writes (.pt2), of
// all releases since 2.1.
//
// Nothing of an archive is executed: expressions and guards have a grammar of
// our own, and only pickles of weights are read, as data. The result has the
// operators that an archive of torch.jit gives, so that what comes behind does
// not know the difference:
//
//	the file                     the module
//	------------------------------------------------------------------
//	user inputs                  parameters of main, with dtype and symbolic sizes
//	parameters, buffers          constants that are named by their FQN, over the mapped file
//	torch.ops.NS.OP.OVERLOAD     NS::OP with its schema; defaults filled in
//	_operator.*, math.*, sym_*   operators on numbers: aten::add.int, ...
//	cond, while_loop, scan, map  prim::If, prim::Loop
//	autocast, no_grad, ...       their graph in place, with casts
//	assertions, guards, ranges   facts on symbols, else conditions in the metadata
//	state that is written        a warning; in-place operators stay
//
// Sizes in the file are claims about the trace. Those of the inputs are taken;
// all others are found anew by the passes.
package export

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// Options says what to read of an archive.
type Options struct {
	// Model names the program where an archive holds several; empty means "model" or the only one.
	Model string
	// Inputs narrow what the file says of the inputs: sizes of dynamic axes, their names, values of ints.
	Inputs []spec.Input
	// InputNames are what the inputs are called in the file, in order, and Names has new names by the program's. Inputs may
	// use both.
	InputNames []string
	Names      map[string]string
	// NoWeights accepts files without the values of weights.
	NoWeights bool
	// Table has the operators of a user's library that are declared; nil for none.
	Table *aten.Table
	// Warn receives remarks on the file; nil drops them.
	Warn func(message string)
	// MaxOps bounds the operators of all graphs together; 0 means 20 million.
	MaxOps int
	// Limits bounds what is read of the container; nil means the usual.
	Limits *archive.Limits
}

// defaultLimits allow a program of 1 GiB.
var defaultLimits = archive.Limits{Records: 1 << 20, Inflated: 4 << 30, Text: 1 << 30}

// Load maps a file and reads it. The module keeps the mapping in Keep.
func Load(path string, opts Options) (*ssa.Module, error) {
	mapping, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := Read(mapping.Data, filepath.Base(path), opts)
	if err != nil {
		_ = mapping.Close() // the error at hand says more
		return nil, err
	}
	m.Keep = append(m.Keep, mapping)
	return m, nil
}

// Read reads an archive from memory, which must not change while the module is
// in use; name is the file's name for messages.
func Read(data []byte, name string, opts Options) (m *ssa.Module, err error) {
	if opts.Limits == nil {
		l := defaultLimits
		opts.Limits = &l
	}
	if opts.MaxOps == 0 {
		opts.MaxOps = 20 << 20
	}
	a, err := archive.Read(data, name, opts.Limits)
	if err != nil {
		return nil, err
	}
	r := &reader{Remarks: archive.Remarks{File: a.File, Warn: opts.Warn}, a: a, opts: opts}
	defer archive.Recover(&err)
	r.find()
	p := r.program()
	im := newImporter(r, p)
	im.run()
	im.m.Sources = im.sources.Sources
	return im.m, nil
}

// topProgram is the program of the layout up to 2.7.
const topProgram = "serialized_exported_program.json"

// IsArchive reports whether a container is one of torch.export.save, or of its relative AOTInductor.
func IsArchive(a *archive.Archive) bool {
	return a.Has(topProgram) || a.HasFolder("data/aotinductor") || len(models(a)) > 0 && !a.Has("data.pkl")
}

// models lists the programs of an archive.
func models(a *archive.Archive) []string {
	var out []string
	for _, r := range a.Records() {
		if name, ok := strings.CutPrefix(r, "models/"); ok && strings.HasSuffix(name, ".json") && !strings.Contains(name, "/") {
			out = append(out, strings.TrimSuffix(name, ".json"))
		}
	}
	sort.Strings(out)
	return out
}

type reader struct {
	archive.Remarks
	a      *archive.Archive
	opts   Options
	model  string
	record string // of the program
	flat   bool   // the layout up to 2.7
}

func (r *reader) fail(record, hint, format string, args ...any) {
	panic(&archive.Error{File: r.File, Record: record, Offset: -1, Err: fmt.Errorf(format, args...), Hint: hint})
}

func (r *reader) failErr(record string, err error) { panic(archive.At(r.File, record, err)) }

func (r *reader) text(record string) []byte {
	b, err := r.a.Text(record)
	if err != nil {
		r.failErr(record, err)
	}
	return b
}

// find chooses the program.
func (r *reader) find() {
	if r.a.Has("byteorder") {
		if b := strings.TrimSpace(string(r.text("byteorder"))); b != "little" {
			r.fail("byteorder", "export the model on a little-endian machine", "the byte order is %.20q", b)
		}
	}
	if r.a.Has(topProgram) {
		if r.opts.Model != "" && r.opts.Model != "model" {
			r.fail("", "", "there is no program %q: an archive of this age holds one only", r.opts.Model)
		}
		r.flat, r.record = true, topProgram
		return
	}
	all := models(r.a)
	switch {
	case len(all) == 0 && r.a.HasFolder("data/aotinductor"):
		r.fail("", "pass the ExportedProgram, saved by torch.export.save", "this archive holds machine code of AOTInductor and no graph")
	case len(all) == 0:
		r.fail("", "pass a file written by torch.export.save", "there is no program in the archive")
	}
	r.model = all[0]
	switch {
	case r.opts.Model != "":
		r.model = r.opts.Model
	case r.a.Has("models/model.json"):
		r.model = "model"
	case len(all) > 1:
		r.fail("", "", "there are several programs; choose one of: %s", strings.Join(all, ", "))
	}
	r.record = "models/" + r.model + ".json"
	if !r.a.Has(r.record) {
		r.fail("", "", "there is no program %q (there are: %s)", r.model, strings.Join(all, ", "))
	}
	if len(all) > 1 && r.opts.Model == "" {
		r.Warnf("there are several programs; %q is read of: %s", r.model, strings.Join(all, ", "))
	}
}

// program decodes the chosen program. What goes wrong in a file of another
// schema version is blamed on that.
func (r *reader) program() *program {
	data := r.text(r.record)
	defer func() {
		if x := recover(); x != nil {
			if major, minor, ok := versionOf(r.a.File, r.record, data); ok {
				r.checkVersion(major, minor)
			}
			panic(x)
		}
	}()
	p := decodeProgram(newScanner(r.a.File, r.record, data))
	if p.major < 0 {
		r.fail(r.record, "", "there is no schema version")
	}
	r.checkVersion(p.major, p.minor)
	return p
}

func (r *reader) checkVersion(major, minor int) {
	if major > newestMajor {
		r.fail(r.record, "use a newer aton, or save the program with PyTorch 2.15 or older", "the schema version is %d.%d; %d is the newest that is known", major, minor, newestMajor)
	}
}

func newModule() *ssa.Module {
	m := ssa.NewModule(append([]ssa.Dialect{prim.Dialect{}}, aten.Dialects()...)...)
	m.SizesSolved = true
	return m
}
