//go:build js && wasm

// Command wasm is aton in a browser: a page beside it gives it the bytes of a model, and asks for the document of the explorer and for
// the converted file. It reads no files: what it knows lies in memory. See worker.js for who calls it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall/js"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/explore"
)

// session is the model at hand.
var session *explore.Session

var errNone = errors.New("there is no model yet")

func main() {
	js.Global().Set("aton", map[string]any{
		"load": call(load), "kernels": data(func([]js.Value) (any, error) { return session.Kernels() }),
		"numbers": data(func([]js.Value) (any, error) {
			set, err := session.Random(0, nil)
			if err != nil {
				return nil, err
			}
			return session.Numbers(set)
		}),
		"pipeline": data(func(args []js.Value) (any, error) { return session.Pipeline(args[0].String()) }),
		"export": call(func(args []js.Value) (any, error) {
			if session == nil {
				return nil, errNone
			}
			return nil, session.Export(chunks{args[0]})
		}),
		"feeds": call(feeds),
		"memory": call(func([]js.Value) (any, error) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return float64(m.Sys), nil
		}),
	})
	select {} // the page ends it
}

// call makes a function of JavaScript. An error is what it returns: the caller looks for it.
func call(f func(args []js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
		defer func() {
			if p := recover(); p != nil { // a bug of ours: the page tells it, and lives on
				result = js.Global().Get("Error").New(fmt.Sprintf("internal error: %v", p))
			}
		}()
		v, err := f(args)
		if err != nil {
			return js.Global().Get("Error").New(err.Error())
		}
		return v
	})
}

// data is call for what goes as JSON.
func data(f func(args []js.Value) (any, error)) js.Func {
	return call(func(args []js.Value) (any, error) {
		if session == nil {
			return nil, errNone
		}
		v, err := f(args)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(v)
		return string(b), err
	})
}

// load takes the bytes of a model, its name, the types of its inputs and the opset, and gives the document.
func load(args []js.Value) (any, error) {
	session = nil
	b := make([]byte, args[0].Get("length").Int())
	js.CopyBytesToGo(b, args[0])
	var o aton.LoadOptions
	name, opset := args[1].String(), args[3].Int()
	if opset != 0 && opset < aton.OldestOpset {
		return nil, fmt.Errorf("opset %d is older than %d", opset, aton.OldestOpset)
	}
	for i := range args[2].Get("length").Int() {
		in, err := spec.Parse(args[2].Index(i).String())
		if err != nil {
			return nil, err
		}
		o.Inputs = append(o.Inputs, in)
	}
	s, err := explore.New(name, func() (*ssa.Module, error) { return aton.LoadBytes(b, name, o) }, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset}}, nil)
	if err != nil {
		return nil, err
	}
	session = s
	text, err := json.Marshal(s.Document())
	return string(text), err
}

// feeds makes random inputs for a runtime: name, element type, shape, and the bytes.
func feeds([]js.Value) (any, error) {
	if session == nil {
		return nil, errNone
	}
	set, err := session.Random(0, nil)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, n := range set.Inputs {
		b := n.Tensor.Bytes()
		to := js.Global().Get("Uint8Array").New(len(b))
		js.CopyBytesToJS(to, b)
		dims := make([]any, len(n.Tensor.Shape))
		for i, d := range n.Tensor.Shape {
			dims[i] = d
		}
		out = append(out, map[string]any{"name": n.Name, "type": n.Tensor.DType.Spec(), "dims": dims, "data": to})
	}
	return out, nil
}

// chunks hands what is written to a function of JavaScript, in pieces.
type chunks struct{ to js.Value }

var _ io.Writer = chunks{}

func (c chunks) Write(p []byte) (int, error) {
	b := js.Global().Get("Uint8Array").New(len(p))
	js.CopyBytesToJS(b, p)
	c.to.Invoke(b)
	return len(p), nil
}
