// Package weights reads files of named tensors: what torch.save writes, in its
// zip and its legacy form, and safetensors. They go beside graph text, which
// has no weights of its own.
package weights

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// Set is an ordered collection of named tensors. The tensors are views of the
// file; they are valid while the mapping is.
type Set struct {
	Names   []string
	Mapping *mapfile.File // nil for a set that was read from memory

	tensors map[string]*tensor.Tensor
}

// Get gives a tensor by name.
func (s *Set) Get(name string) (*tensor.Tensor, bool) {
	t, ok := s.tensors[name]
	return t, ok
}

func (s *Set) add(name string, t *tensor.Tensor) {
	if s.tensors == nil {
		s.tensors = map[string]*tensor.Tensor{}
	}
	if _, dup := s.tensors[name]; !dup {
		s.Names = append(s.Names, name)
	}
	s.tensors[name] = t
}

// Load maps a file and reads it. key is the path of the state dict in a
// checkpoint, such as model.encoder; empty means the first one found.
func Load(path, key string) (*Set, error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := Read(m.Data, filepath.Base(path), key)
	if err != nil {
		_ = m.Close() // the error at hand says more
		return nil, err
	}
	s.Mapping = m
	return s, nil
}

// Read reads a file in memory, which must not change while the set is in use.
func Read(data []byte, name, key string) (*Set, error) {
	switch {
	case archive.IsZip(data):
		return readZip(data, name, key)
	case bytes.HasPrefix(data, []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")):
		return readLegacy(data, name, key)
	case len(data) > 9 && data[8] == '{':
		return readSafetensors(data, name)
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return nil, &archive.Error{File: name, Offset: -1, Err: errors.New("this is a file of PyTorch 0.1"), Hint: "load and save it with a newer PyTorch"}
	}
	return nil, &archive.Error{File: name, Offset: -1, Err: errors.New("this is neither a file of torch.save nor safetensors"), Hint: "save the weights with torch.save(module.state_dict(), ...)"}
}

func reader(ts *pickle.Tensors) *pickle.Reader {
	return &pickle.Reader{
		Persistent: func(id any) (any, error) {
			if t, ok := id.(pickle.Tuple); ok && len(t) >= 2 && t[0] == "module" {
				return t[1], nil // the class; its source is not needed
			}
			return ts.Persistent(id)
		},
		Call: func(g pickle.Global, args pickle.Tuple) (any, bool, error) {
			if g.Module == "torch.jit._pickle" && len(args) > 0 {
				return args[0], true, nil
			}
			return ts.Call(g, args)
		},
	}
}

func readZip(data []byte, name, key string) (*Set, error) {
	a, err := archive.Read(data, name, nil)
	if err != nil {
		return nil, err
	}
	ts := &pickle.Tensors{Load: func(key string) ([]byte, error) { return a.Bytes("data/" + key) }}
	if a.Has("byteorder") {
		b, err := a.Text("byteorder")
		if err != nil {
			return nil, err
		}
		ts.BigEndian = strings.TrimSpace(string(b)) == "big"
	}
	b, err := a.Text("data.pkl")
	if err != nil {
		return nil, err
	}
	v, _, err := reader(ts).Read(b)
	if err != nil {
		return nil, archive.At(name, "data.pkl", err)
	}
	return collect(v, name, key)
}

// maxDepth bounds the nesting of checkpoints, which may be cyclic.
const maxDepth = 200

// collect finds the state dict in a value and flattens it.
func collect(v any, name, key string) (*Set, error) {
	if key != "" {
		for _, k := range strings.Split(key, ".") {
			next, ok := member(v, k)
			if !ok {
				return nil, &archive.Error{File: name, Offset: -1, Err: fmt.Errorf("there is no %s on the path %s", k, key), Hint: "give the path of the state dict in the checkpoint"}
			}
			v = next
		}
	}
	s := &Set{}
	found := find(v)
	if found == nil {
		return nil, &archive.Error{File: name, Offset: -1, Err: errors.New("there are no named tensors in the file"), Hint: "save the weights with torch.save(module.state_dict(), ...)"}
	}
	flatten(s, found, "", 0)
	return s, nil
}

func member(v any, k string) (any, bool) {
	switch v := v.(type) {
	case *pickle.Dict:
		return v.Get(k)
	case *pickle.Object:
		if d, ok := v.State.(*pickle.Dict); ok {
			return d.Get(k)
		}
	}
	return nil, false
}

// find gives the first mapping of strings to tensors, breadth first.
func find(v any) any {
	level := []any{v}
	seen := map[any]bool{}
	for depth := 0; depth < maxDepth && len(level) > 0; depth++ {
		var next []any
		for _, x := range level {
			switch x := x.(type) {
			case *pickle.Dict:
				if seen[x] {
					continue
				}
				seen[x] = true
				for i, k := range x.Keys {
					_, named := k.(string)
					if _, ok := x.Values[i].(*tensor.Tensor); ok && named {
						return x
					}
				}
				next = append(next, x.Values...)
			case *pickle.Object:
				if seen[x] {
					continue
				}
				seen[x] = true
				if d, ok := x.State.(*pickle.Dict); ok {
					if _, module := d.Get("_parameters"); module || hasTensor(d) || strings.HasPrefix(x.Class.Module, "__torch__") {
						return x
					}
					next = append(next, d.Values...)
				}
			case pickle.Tuple:
				next = append(next, x...)
			case *pickle.List:
				next = append(next, x.Items...)
			}
		}
		level = next
	}
	return nil
}

func hasTensor(d *pickle.Dict) bool {
	for _, v := range d.Values {
		if _, ok := v.(*tensor.Tensor); ok {
			return true
		}
	}
	return false
}

// flatten adds the tensors of a mapping or module under dotted names.
func flatten(s *Set, v any, prefix string, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case *pickle.Dict:
		for i, k := range v.Keys {
			n, ok := k.(string)
			if !ok {
				continue
			}
			switch x := v.Values[i].(type) {
			case *tensor.Tensor:
				s.add(prefix+n, x)
			case *pickle.Dict, *pickle.Object:
				flatten(s, x, prefix+n+".", depth+1)
			}
		}
	case *pickle.Object:
		d, ok := v.State.(*pickle.Dict)
		if !ok {
			return
		}
		if _, eager := d.Get("_parameters"); !eager {
			flatten(s, d, prefix, depth+1)
			return
		}
		for _, part := range []string{"_parameters", "_buffers"} {
			if x, ok := d.Get(part); ok {
				flatten(s, x, prefix, depth+1)
			}
		}
		if x, ok := d.Get("_modules"); ok {
			flatten(s, x, prefix, depth+1)
		}
	}
}
