package export

import (
	"bytes"
	"fmt"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa/tensor"
)

// payload says where the data of a weight is.
type payload struct {
	path   string
	pickle bool
	meta   *tensorMeta
}

// weights gives the parameters, buffers and constants of one program by name.
type weights struct {
	r        *reader
	raw      map[string]payload
	folder   map[string]string // of raw payloads
	tensors  map[string]*tensor.Tensor
	storages map[string]*tensor.Storage
	views    map[string]*tensor.Tensor // equal views of one storage are one tensor
	// wrapped are the weights that are objects of tensor subclasses, pickled those of all records that were read.
	wrapped map[string]*pickle.Subclass
	pickled map[string]any
	names   []string
}

func (r *reader) openWeights() *weights {
	w := &weights{r: r, raw: map[string]payload{}, folder: map[string]string{}, tensors: map[string]*tensor.Tensor{},
		storages: map[string]*tensor.Storage{}, views: map[string]*tensor.Tensor{}, wrapped: map[string]*pickle.Subclass{},
		pickled: map[string]any{}}
	if r.flat {
		for _, base := range []string{"serialized_state_dict", "serialized_constants"} {
			switch {
			case r.a.Has(base + ".pt"):
				w.saved(base + ".pt")
			case r.a.Has(base + ".json"): // up to 2.2, with the same content
				w.saved(base + ".json")
			}
		}
		return w
	}
	for _, folder := range []string{"data/weights", "data/constants"} {
		kind := folder[len("data/"):]
		switch config := folder + "/" + r.model + "_" + kind + "_config.json"; {
		case r.a.Has(config):
			w.config(folder, config)
		case r.a.Has(folder + "/" + r.model + ".pt"):
			w.saved(folder + "/" + r.model + ".pt")
		}
	}
	return w
}

// config reads {"config": {name: payload}}.
func (w *weights) config(folder, record string) {
	s := newScanner(w.r.a.File, record, w.r.text(record))
	s.object(func(key []byte) {
		if string(key) != "config" {
			s.skip()
			return
		}
		s.object(func(key []byte) {
			name := string(key)
			var p payload
			s.object(func(key []byte) {
				switch string(key) {
				case "path_name":
					p.path = s.str()
				case "use_pickle":
					p.pickle = s.boolean()
				case "tensor_meta":
					if !s.null() {
						p.meta = decodeTensorMeta(s)
					}
				default:
					s.skip()
				}
			})
			w.raw[name], w.folder[name] = p, folder
			w.names = append(w.names, name)
		})
	})
	s.end()
}

// saved reads a dict of tensors that torch.save wrote into a record.
func (w *weights) saved(record string) {
	data, err := w.r.a.Bytes(record)
	if err != nil {
		w.r.failErr(record, err)
	}
	if len(data) == 0 {
		return
	}
	v := w.unpickle(record, data)
	d, ok := v.(*pickle.Dict)
	if !ok {
		w.r.fail(record, "", "holds %s, not a dict of weights", pickle.Describe(v))
	}
	for i, k := range d.Keys {
		name, ok := k.(string)
		if !ok {
			w.r.fail(record, "", "a name is %s", pickle.Describe(k))
		}
		switch v := d.Values[i].(type) {
		case *tensor.Tensor:
			w.tensors[name] = v
			w.names = append(w.names, name)
		case *pickle.Subclass:
			w.wrapped[name] = v
		}
	}
}

// unpickle reads what torch.save wrote; record is for messages.
func (w *weights) unpickle(record string, data []byte) any {
	inner, err := archive.Read(data, w.r.a.File, w.r.opts.Limits)
	if err != nil {
		w.r.failErr(record, err)
	}
	text, err := inner.Text("data.pkl")
	if err != nil {
		w.r.failErr(record, err)
	}
	ts := &pickle.Tensors{Load: func(key string) ([]byte, error) { return inner.Bytes("data/" + key) }}
	if inner.Has("byteorder") {
		if b, err := inner.Text("byteorder"); err == nil && bytes.Equal(bytes.TrimSpace(b), []byte("big")) {
			ts.BigEndian = true
		}
	}
	v, _, err := (&pickle.Reader{Call: ts.Call, Persistent: ts.Persistent}).Read(text)
	if err != nil {
		w.r.failErr(record, err)
	}
	return v
}

// subclass gives a weight that is an object of a tensor subclass, nil if it is a plain tensor.
func (w *weights) subclass(name string) *pickle.Subclass {
	p, ok := w.raw[name]
	if !ok || !p.pickle {
		return w.wrapped[name]
	}
	record := w.folder[name] + "/" + p.path
	v, ok := w.pickled[record]
	if !ok {
		data, err := w.r.a.Bytes(record)
		if err != nil {
			w.r.failErr(record, err)
		}
		v = w.unpickle(record, data)
		w.pickled[record] = v
	}
	switch v := v.(type) {
	case *pickle.Subclass:
		return v
	case *tensor.Tensor:
		w.tensors[name] = v
	default:
		w.r.fail(record, "", "%s is %s, not a tensor", name, pickle.Describe(v))
	}
	return nil
}

// get gives a weight that is a plain tensor. The data stays in the file.
func (w *weights) get(name string) *tensor.Tensor {
	if t := w.tensors[name]; t != nil {
		return t
	}
	p, ok := w.raw[name]
	if !ok {
		w.r.fail("", "", "the values of %s are missing", name)
	}
	record := w.folder[name] + "/" + p.path
	switch {
	case p.meta == nil:
		w.r.fail(record, "", "%s is no tensor", name)
	case p.meta.layout != 7:
		w.r.fail(record, "make the tensor dense before exporting", "%s is not a dense tensor (layout %d)", name, p.meta.layout)
	}
	d := dtypeOf(int64(p.meta.dtype))
	if d == tensor.Undefined {
		w.r.fail(record, "", "%s has the element type %d, which is not known", name, p.meta.dtype)
	}
	t := &tensor.Tensor{DType: d, Shape: w.plain(record, p.meta.sizes), Strides: w.plain(record, p.meta.strides)}
	t.Offset = w.plain(record, []symInt{p.meta.offset})[0]
	st := w.storages[record]
	if st == nil {
		data, err := w.r.a.Bytes(record)
		if err != nil {
			w.r.failErr(record, err)
		}
		st = tensor.NewStorage(data)
		w.storages[record] = st
	}
	if st.Len()%int64(d.Size()) != 0 {
		w.r.fail(record, "", "%d bytes are no whole elements of %v", st.Len(), d)
	}
	t.Storage = st
	if len(t.Shape) != len(t.Strides) || len(t.Shape) > 64 {
		w.r.fail(record, "", "%s has %d sizes and %d strides", name, len(t.Shape), len(t.Strides))
	}
	if st.Len() == 0 && !hasZero(t.Shape) {
		if !w.r.opts.NoWeights {
			w.r.fail(record, "export the model with real weights, or convert without weights (--no-weights)",
				"the values of %s are not in the file: the model was exported from fake or meta tensors", name)
		}
		t.Storage, t.Strides, t.Offset = nil, tensor.ContiguousStrides(t.Shape), 0
	}
	if err := t.Check(); err != nil {
		w.r.fail(record, "", "%s: %v", name, err)
	}
	key := fmt.Sprint(record, d, t.Shape, t.Strides, t.Offset)
	if old := w.views[key]; old != nil {
		t = old
	}
	w.views[key] = t
	w.tensors[name] = t
	return t
}

func hasZero(shape []int64) bool {
	for _, n := range shape {
		if n == 0 {
			return true
		}
	}
	return false
}

func (w *weights) plain(record string, v []symInt) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		if x.expr != "" || x.n < 0 {
			w.r.fail(record, "", "a size or stride that is not a plain number")
		}
		out[i] = x.n
	}
	return out
}
