// Package onnxfile writes modules of the onnx dialect as ONNX files and reads them.
//
// Weights go from the storage they are in, usually a mapped file, straight to
// the output; they are never gathered in memory. The same module and options
// give the same bytes.
package onnxfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

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
	// OutputNames names the outputs in order; a prefix will do.
	OutputNames []string
	// GraphName is that of the file that was read, or main_graph, if empty.
	GraphName string
	// Producer and Version fill producer_name and producer_version; aton and nothing if empty.
	Producer, Version string
	// ValueInfo records the types of intermediate values too.
	ValueInfo bool
	// InitializersAsInputs lists Module.Weights among the graph's inputs too. Opsets below 9 list all initializers.
	InitializersAsInputs bool
	// NoWeights leaves Module.Weights out: they are inputs only.
	NoWeights bool

	// for tests: the size that forces external data, and what stands between the writer and a file
	limit int64
	wrap  func(io.Writer) io.Writer
}

// maxMessage is protobuf's limit on the size of a message.
const maxMessage = math.MaxInt32

// Write writes the module's main function to a file, and its weights to
// path.data where they go beside it. Both appear under their names only when
// they are complete; what was there under these names stays until then. A path
// that is no regular file, such as a pipe, is written to as it is.
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
	info, statErr := os.Stat(path)
	if statErr == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	stream := statErr == nil && !info.Mode().IsRegular()
	if opts.External == Always || opts.External == Auto && !stream && out.size(false) > limit {
		if stream {
			return fmt.Errorf("%s: is no regular file, so no data file can lie beside it", path)
		}
		out.location = filepath.Base(path) + ".data"
	}
	if n := out.size(true); n > limit {
		return fmt.Errorf("the model takes %d bytes, more than the %d that a protobuf message can have", n, limit)
	}
	write := func(to string, flags int, f func(io.Writer) error) error {
		return named(path, writeFile(to, flags, opts.wrap, f))
	}
	if stream {
		return write(path, os.O_WRONLY, out.write)
	}
	var made []string // temporary files, to rename or remove
	defer func() {
		if err != nil {
			for _, name := range made {
				os.Remove(name)
			}
		}
	}()
	temporary := func(to string, f func(io.Writer) error) error {
		name := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+"."+strconv.Itoa(os.Getpid())+".tmp")
		made = append(made, name)
		return write(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, f)
	}
	if out.location != "" {
		if err := temporary(path+".data", out.writeData); err != nil {
			return err
		}
	}
	if err := temporary(path, out.write); err != nil {
		return err
	}
	if out.location != "" {
		if err := os.Rename(made[0], path+".data"); err != nil {
			return named(path, err)
		}
	}
	return named(path, os.Rename(made[len(made)-1], path))
}

// named puts the path that the user knows into errors about temporary files.
func named(path string, err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &l):
		return &os.PathError{Op: "write", Path: path, Err: l.Err}
	case errors.As(err, &p) && strings.HasSuffix(p.Path, ".tmp"):
		return &os.PathError{Op: "write", Path: path, Err: p.Err}
	}
	return err
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
	return buffered(w, out.write)
}

func buffered(w io.Writer, f func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := f(b); err != nil {
		return err
	}
	return b.Flush()
}

// writeFile opens a file and has it filled.
func writeFile(name string, flags int, wrap func(io.Writer) io.Writer, f func(io.Writer) error) error {
	file, err := os.OpenFile(name, flags, 0o666)
	if err != nil {
		return err
	}
	w := io.Writer(file)
	if wrap != nil {
		w = wrap(w)
	}
	err = buffered(w, f)
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}
