// Package jit reads the archives that torch.jit.save writes.
//
// Nothing of an archive is executed: pickles are read as data, and the code is
// compiled to ssa. The result is literal: the operators that PyTorch's own
// loader makes, in the same order, with calls and attributes in place. The
// passes inline and freeze resolve those.
package jit

import (
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// Options says what to read of an archive.
type Options struct {
	// Method is the method of the top module to convert; empty means forward.
	Method string
	// Training, if not nil, is what training is in the whole object tree.
	Training *bool
	// Table has the operators of a user's library that are declared; nil for none.
	Table *aten.Table
	// Warn receives remarks on the file; nil drops them.
	Warn func(message string)
	// MaxOps bounds the operators of all functions together; 0 means 4 million.
	MaxOps int
	// Limits bounds what is read of the container; nil means the usual.
	Limits *archive.Limits
}

// maxCode bounds the bytes of all sources; those of the largest models known have 3 MB.
const maxCode = 32 << 20

// Version of the file format; see torch.jit's file format notes.
const (
	maxVersion = 10
	// the versions that changed the meaning of operators
	versionTrueDivision = 4
	versionFull         = 5
	versionLinspace     = 8
	versionLogspace     = 9
)

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
// in use. The first function of the module is the method asked for; name is
// the file's name for messages.
func Read(data []byte, name string, opts Options) (m *ssa.Module, err error) {
	a, err := archive.Read(data, name, opts.Limits)
	if err != nil {
		return nil, err
	}
	l := newLoader(a, opts)
	defer archive.Recover(&err)
	l.load()
	a.Forget()
	// a loader of its own: that of the module has objects, syntax trees and positions in memory, which nothing needs any more
	l.m.Sources = newLoader(a, Options{}).sourceTexts
	return l.m, nil
}

// IsArchive reports whether a container is one of torch.jit.save.
func IsArchive(a *archive.Archive) bool {
	return a.Has("data.pkl") && (a.Has("constants.pkl") || a.HasFolder("code"))
}

type loader struct {
	archive.Remarks
	a       *archive.Archive
	opts    Options
	m       *ssa.Module
	version int
	big     bool // storages are big-endian

	sources   map[string]*source
	classes   map[string]*class
	constants []ssa.Literal
	objects   map[*pickle.Object]*ssa.Object
	live      []string // classes of the objects, in order of discovery
	isLive    map[string]bool

	functions map[string]*function
	queue     []*function
	virtual   map[string]bool // methods called through interfaces: Interface.method
	virtuals  []string
	ops       int
	code      int // bytes of the sources that were read
	depth     int
	steps     int // of the evaluator
	eval      *evaluator
	guessed   map[*ssa.Op]bool // operators that nothing declares
}

func newLoader(a *archive.Archive, opts Options) *loader {
	if opts.Method == "" {
		opts.Method = "forward"
	}
	if opts.MaxOps == 0 {
		opts.MaxOps = 4 << 20
	}
	dialects := append([]ssa.Dialect{prim.Dialect{}}, aten.Dialects()...)
	return &loader{
		Remarks: archive.Remarks{File: a.File, Warn: opts.Warn}, a: a, opts: opts, m: ssa.NewModule(dialects...),
		sources: map[string]*source{}, classes: map[string]*class{},
		objects: map[*pickle.Object]*ssa.Object{}, isLive: map[string]bool{},
		functions: map[string]*function{}, virtual: map[string]bool{}, guessed: map[*ssa.Op]bool{},
	}
}

// fail ends the reading with an error about the file or a record.
func (l *loader) fail(record, hint, format string, args ...any) {
	panic(&archive.Error{File: l.File, Record: record, Offset: -1, Err: fmt.Errorf(format, args...), Hint: hint})
}

// failErr ends the reading with an error of a reader below.
func (l *loader) failErr(record string, err error) { panic(archive.At(l.File, record, err)) }

func (l *loader) text(record string) []byte {
	b, err := l.a.Text(record)
	if err != nil {
		l.failErr(record, err)
	}
	return b
}

func (l *loader) load() {
	switch {
	case l.a.Has("model.json") || l.a.Has("attributes.pkl"):
		l.fail("", "load and save it again with PyTorch 1.2 or newer", "this is an archive of PyTorch 1.0 or 1.1")
	case !l.a.Has("data.pkl") && l.a.HasFolder(".data/ts_code"):
		l.fail("", "export the module with torch.jit.save", "this is a torch.package archive")
	case !l.a.Has("data.pkl"):
		l.fail("", "pass a file written by torch.jit.save", "there is no data.pkl in the archive")
	case !IsArchive(l.a):
		l.fail("", "pass a file written by torch.jit.save, and this one as its weights if they belong together",
			"this file has weights but no code: torch.save wrote it")
	}
	l.readVersion()
	if l.a.Has("constants.pkl") {
		v := l.unpickle("constants.pkl", "constants")
		t, ok := v.(pickle.Tuple)
		if !ok {
			l.fail("constants.pkl", "", "holds %s, not a tuple", pickle.Describe(v))
		}
		for _, c := range t {
			l.constants = append(l.constants, l.literal(c, nil, "", 0))
		}
	}
	root := l.literal(l.unpickle("data.pkl", "data"), nil, "", 0)
	if root.Kind != ssa.ObjectLit {
		l.fail("data.pkl", "pass a file written by torch.jit.save", "the top object is not a module")
	}
	l.m.Root = root.Object
	l.entry()
	l.inputs()
}

func (l *loader) readVersion() {
	record := "version"
	if l.a.Has(".data/version") {
		record = ".data/version"
	}
	if !l.a.Has(record) {
		l.Warnf("there is no version; taken as %d", maxVersion)
		l.version = maxVersion
	} else {
		s := strings.TrimSpace(string(l.text(record)))
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			l.fail(record, "", "%.20q is not a version", s)
		}
		if v > maxVersion {
			l.Warnf("file format version %d is newer than %d; operators may have changed", v, maxVersion)
		}
		l.version = v
	}
	if l.a.Has("byteorder") {
		switch s := strings.TrimSpace(string(l.text("byteorder"))); s {
		case "little":
		case "big":
			l.big = true
		default:
			l.fail("byteorder", "", "%.20q is not a byte order", s)
		}
	}
}

// entry compiles the method asked for and everything that it calls.
func (l *loader) entry() {
	c := l.class(l.m.Root.Class)
	if c == nil || c.def == nil {
		l.fail("data.pkl", "the archive is not whole: save the module again with torch.jit.save", "the code of class %s is missing", l.m.Root.Class)
	}
	def := c.methods[l.opts.Method]
	if def == nil {
		var names []string
		for n := range c.methods {
			names = append(names, n)
		}
		sort.Strings(names)
		hint := "the class has no methods"
		if len(names) > 0 {
			hint = "name one of: " + strings.Join(names, ", ")
		}
		l.fail(c.src.record, hint, "%s has no method %s", PythonName(c.name), l.opts.Method)
	}
	if len(c.hooks) > 0 {
		l.Warnf("forward hooks of the top module are not called by its forward: %s", strings.Join(c.hooks, ", "))
	}
	main := l.method(c, l.opts.Method)
	main.fn = l.m.NewFunc("main")
	l.functions["main"] = main
	l.compile(main)
	for {
		for len(l.queue) > 0 {
			f := l.queue[0]
			l.queue = l.queue[1:]
			l.compile(f)
		}
		// what is called through an interface is called on some live object
		for _, v := range l.virtuals {
			i := strings.LastIndexByte(v, '.')
			for _, name := range l.implementers(v[:i]) {
				l.need(l.method(l.class(name), v[i+1:]))
			}
		}
		if len(l.queue) == 0 {
			return
		}
	}
}

// PythonName is the name of a class as Python has it: TorchScript puts __torch__ before it, and numbers of its own into it.
func PythonName(qual string) string {
	qual = strings.TrimPrefix(qual, "__torch__.")
	var parts []string
	for _, p := range strings.Split(qual, ".") {
		if !strings.HasPrefix(p, "___torch_mangle_") {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ".")
}

// place is the 1-based line and 0-based column of a position.
func (s *source) place(pos int) (line, col int) {
	if s.lines == nil {
		s.lines = []int{0}
		for i := 0; i < len(s.text); i++ {
			if s.text[i] == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	}
	i := sort.SearchInts(s.lines, pos+1) - 1
	return i + 1, pos - s.lines[max(i, 0)]
}
