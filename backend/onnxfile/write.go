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
	// GraphName is main_graph if empty.
	GraphName string
	// Producer and Version fill producer_name and producer_version; aton and nothing if empty.
	Producer, Version string
	// ValueInfo records the types of intermediate values too.
	ValueInfo bool
	// InitializersAsInputs lists the weights among the graph's inputs, as opsets below 9 always do.
	InitializersAsInputs bool
	// NoWeights writes no elements: named weights become graph inputs after the real ones.
	NoWeights bool

	limit int64 // size that forces external data, for tests
}

// maxMessage is protobuf's limit on the size of a message.
const maxMessage = math.MaxInt32

// Write writes the module's main function to a file, and its weights to
// path.data where they go beside it. Both appear under their names only when
// they are complete.
func Write(path string, m *ssa.Module, opts Options) (err error) {
	out, err := newModel(m, opts)
	if err != nil {
		return err
	}
	limit := int64(maxMessage)
	if opts.limit > 0 {
		limit = opts.limit
	}
	if opts.External == Always || opts.External == Auto && out.size(false) > limit {
		out.location = filepath.Base(path) + ".data"
	}
	if n := out.size(true); n > limit {
		return fmt.Errorf("the model takes %d bytes, more than the %d that a protobuf message can have", n, limit)
	}
	var done []string // temporary files to remove or rename
	defer func() {
		if err != nil {
			for _, name := range done {
				os.Remove(name)
			}
		}
	}()
	if out.location != "" {
		tmp, err := create(path+".data", out.writeData)
		done = append(done, tmp)
		if err != nil {
			return err
		}
	}
	tmp, err := create(path, out.write)
	done = append(done, tmp)
	if err != nil {
		return err
	}
	if out.location != "" {
		if err := os.Rename(done[0], path+".data"); err != nil {
			return err
		}
	}
	return os.Rename(tmp, path)
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

// create writes a new file beside path and gives its name.
func create(path string, f func(io.Writer) error) (string, error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.Itoa(os.Getpid())+".tmp")
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return name, err
	}
	err = buffered(file, f)
	if e := file.Close(); err == nil {
		err = e
	}
	return name, err
}
