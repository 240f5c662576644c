// Package onnxfile writes modules of the onnx dialect as ONNX files and reads them.
//
// Weights go from the storage they are in, usually a mapped file, straight to
// the output; they are never gathered in memory. The same module and options
// give the same bytes.
package onnxfile

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/ssa"
)

// External says where the elements of tensors go.
type External int

// Values of External.
const (
	Auto   External = iota // into the model file, beside it if that would pass 2 GiB
	Always                 // beside the model file, for tensors of 1 KiB and more
	Never                  // into the model file; an error beyond 2 GiB
)

// Options control the writer. The zero value is what most callers want.
type Options struct {
	External External
	// OutputAxes name axes of outputs, by the output's name and the axis; a negative one counts from the end. An axis of a
	// known size, and a name that is another size's, are errors.
	OutputAxes map[string]map[int]string
	// Modules turns calls of modules into functions of the file: those of paths (features.0), of classes (Conv2d,
	// torch.nn.modules.conv.Conv2d), or all of them ("*"). The file is of IR version 8 at least then.
	Modules []string
	// Unchecked writes what is no model of ONNX: operators of other languages, values without types.
	Unchecked bool
	// DocStrings writes the line of the program, and the module, as the documentation of nodes that have none.
	DocStrings bool
	// NodeMetadata writes metadata of nodes, values and graphs at opsets below 21 too; the IR version is 10 then.
	NodeMetadata bool
	// GraphName is that of the file that was read, or main_graph, if empty.
	GraphName string
	// Producer and Version fill producer_name and producer_version; aton and nothing if empty.
	Producer, Version string
	// ValueInfo records the types of intermediate values too.
	ValueInfo bool
	// Functions are bodies of operators of custom domains; the file carries those that it calls.
	Functions *Functions
	// Progress, if not nil, is told while files are written how many bytes are, and how many there will be.
	Progress func(written, all int64)

	// for tests: the size that forces external data, and what makes steps of writing files fail
	limit int64
	fault func(step string) error
}

// maxMessage is protobuf's limit on the size of a message.
const maxMessage = math.MaxInt32

// Write writes the module's main function to a file, and its weights to a data file where they go beside it. Both appear
// under their names only when they are complete, and what was there stays until then. The data file's name has a hash of
// its content, model.onnx.HASH.data, so that no model ever finds the weights of another one, however the writing ends; the
// data file of the model that is replaced is removed. A path that is no regular file, such as a pipe, is written to as it is.
// Errors of the system name the path.
func Write(path string, m *ssa.Module, opts Options) (err error) {
	out, err := newModel(m, opts)
	if err != nil {
		return err
	}
	limit := int64(maxMessage)
	if opts.limit > 0 {
		limit = opts.limit
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	if isSource(path, m) {
		return fmt.Errorf("%s: the model is read from this file; write to another one", path)
	}
	stream := !atomicfile.Replaceable(path)
	always := opts.External == Always && (stream || slices.ContainsFunc(out.inits, func(in initializer) bool { return in.large() }))
	if always || opts.External == Auto && !stream && out.size(false) > limit {
		if stream {
			return fmt.Errorf("%s: is no regular file, so no data file can lie beside it", path)
		}
		out.location = dataName(path, nil) // of the length that the name will have
	}
	if n := out.size(true); n > limit {
		return fmt.Errorf("the model takes %d bytes, more than the %d that a protobuf message can have", n, limit)
	}
	count := out.counter(opts.Progress)
	if stream {
		return atomicfile.Write(path, func(w io.Writer) error { return out.write(count(w)) })
	}
	g := atomicfile.Group{Fault: opts.fault}
	defer g.Abandon()
	if out.location != "" {
		sum := &contentHash{}
		if err := g.Add(path+".data", func(w io.Writer) error {
			a := writeAhead(w)
			err := out.writeData(count(io.MultiWriter(a, sum)))
			return cmp.Or(a.close(), err)
		}); err != nil {
			return err
		}
		out.location = dataName(path, sum.bytes())
		g.Rename(filepath.Join(filepath.Dir(path), out.location))
	}
	if err := g.Add(path, func(w io.Writer) error { return out.write(count(w)) }); err != nil {
		return err
	}
	var replaced []string
	g.Before = func() { replaced = DataFiles(path) }
	g.After = func() {
		for _, name := range replaced {
			if name != out.location {
				os.Remove(filepath.Join(filepath.Dir(path), name))
			}
		}
	}
	return g.Commit()
}

// WriteTo writes the module's main function as one message.
func WriteTo(w io.Writer, m *ssa.Module, opts Options) error {
	if opts.External == Always {
		return errors.New("external data needs a file name")
	}
	out, err := newModel(m, opts)
	if err != nil {
		return err
	}
	if n := out.size(false); n > maxMessage {
		return fmt.Errorf("the model takes %d bytes, more than a protobuf message can have; write it to a file with external data", n)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := out.write(out.counter(opts.Progress)(b)); err != nil {
		return err
	}
	return b.Flush()
}

// counter gives what makes a writer tell how much was written of all that the model and its data file take.
func (m *model) counter(progress func(written, all int64)) func(io.Writer) io.Writer {
	if progress == nil {
		return func(w io.Writer) io.Writer { return w }
	}
	all, written := m.size(true), int64(0)
	for i := range m.inits {
		if m.external(&m.inits[i]) {
			all += m.inits[i].size()
		}
	}
	return func(w io.Writer) io.Writer { return &counted{w, all, &written, progress} }
}

// counted is a writer that tells how far the work is.
type counted struct {
	w        io.Writer
	all      int64
	written  *int64 // of all files
	progress func(written, all int64)
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	*c.written += int64(n)
	c.progress(min(*c.written, c.all), c.all)
	return n, err
}
