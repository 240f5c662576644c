package onnxfile

import (
	"fmt"
	"io"
	"strconv"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa/tensor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Field numbers that the framing below writes by hand.
const (
	fieldModelGraph       = 7
	fieldGraphInitializer = 5
	fieldTensorRawData    = 9
	externalThreshold     = 1024 // bytes from which a tensor goes to the data file
	externalAlignment     = 4096 // offsets in the data file are multiples of it
)

// model is a file about to be written: everything but the elements of tensors
// is encoded, in the order of the parts.
type model struct {
	head, tail           []byte // fields of ModelProto before and after the graph
	graphHead, graphTail []byte // fields of GraphProto before and after the initializers
	inits                []initializer
	location             string // name of the data file, empty for none
	sources              []source
	buffer               []byte // of copyFile
	band                 []byte // of transposed
}

// initializer is a named tensor; meta is its encoding without the elements, t those as they are in the file.
type initializer struct {
	name string
	t    *tensor.Tensor
	meta []byte
	raw  bool // the elements follow as raw_data or go to the data file
}

func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// maxExpanded is the number of bytes from which on a tensor must have most of them in memory: one of stride 0 shows a single
// element as often as it likes.
const maxExpanded = 1 << 28

// newInitializer makes an initializer of t whose name and notes p has.
func newInitializer(p *onnxpb.TensorProto, t *tensor.Tensor) (initializer, error) {
	name := p.GetName()
	if t.DType.ONNX() == 0 {
		return initializer{}, fmt.Errorf("ONNX has no element type for the %v tensor %s", t.DType, name)
	}
	if !t.HasData() {
		return initializer{}, fmt.Errorf("the elements of the tensor %s are not at hand", name)
	}
	if n := t.NumBytes(); t.Storage != nil && n > maxExpanded && n/16 > t.Storage.Len() {
		return initializer{}, fmt.Errorf("the tensor %s shows %d bytes of memory as %d; keep it small, and expand it in the program", name, t.Storage.Len(), n)
	}
	if err := t.Check(); err != nil {
		return initializer{}, fmt.Errorf("tensor %s: %v", name, err)
	}
	p.Dims, p.DataType = t.Shape, proto.Int32(int32(t.DType.ONNX()))
	raw := t.DType != tensor.String
	if !raw {
		for _, s := range t.StringData() {
			p.StringData = append(p.StringData, []byte(s))
		}
	}
	meta, err := marshal(p)
	return initializer{name, t, meta, raw}, err
}

// external reports whether the elements go to the data file.
func (m *model) external(in *initializer) bool {
	return m.location != "" && in.large()
}

// size is the number of bytes of the elements in a file.
func (in *initializer) size() int64 { return packedSize(in.t.DType, in.t.NumElements()) }

// large reports elements that may lie in a data file.
func (in *initializer) large() bool { return in.raw && in.size() >= externalThreshold }

// encode gives the bytes of the TensorProto before the elements, and how many bytes of elements follow.
func (m *model) encode(in *initializer, offset int64) (b []byte, data int64) {
	switch {
	case !in.raw:
		return in.meta, 0
	case m.external(in):
		b = append(b, in.meta...)
		for _, kv := range [...][2]string{
			{"location", m.location}, {"offset", strconv.FormatInt(offset, 10)}, {"length", strconv.FormatInt(in.size(), 10)},
		} {
			var e []byte
			e = protowire.AppendTag(e, 1, protowire.BytesType)
			e = protowire.AppendString(e, kv[0])
			e = protowire.AppendTag(e, 2, protowire.BytesType)
			e = protowire.AppendString(e, kv[1])
			b = protowire.AppendTag(b, 13, protowire.BytesType)
			b = protowire.AppendBytes(b, e)
		}
		b = protowire.AppendTag(b, 14, protowire.VarintType)
		return protowire.AppendVarint(b, 1), 0
	}
	b = append(b, in.meta...)
	b = protowire.AppendTag(b, fieldTensorRawData, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(in.size())), in.size()
}

func (m *model) graphSize(external bool) int64 {
	if !external {
		plain := *m
		plain.location = ""
		m = &plain
	}
	n := int64(len(m.graphHead) + len(m.graphTail))
	m.eachOffset(func(in *initializer, offset int64) error {
		b, data := m.encode(in, offset)
		size := int64(len(b)) + data
		n += int64(protowire.SizeTag(fieldGraphInitializer)+protowire.SizeVarint(uint64(size))) + size
		return nil
	})
	return n
}

// size is the size of the model file; external counts elements in the data file as outside.
func (m *model) size(external bool) int64 {
	g := m.graphSize(external)
	return int64(len(m.head)+len(m.tail)) + int64(protowire.SizeTag(fieldModelGraph)+protowire.SizeVarint(uint64(g))) + g
}

// eachOffset walks the initializers with their offsets in the data file.
func (m *model) eachOffset(f func(in *initializer, offset int64) error) error {
	at := int64(0)
	for i := range m.inits {
		in := &m.inits[i]
		if !m.external(in) {
			if err := f(in, 0); err != nil {
				return err
			}
			continue
		}
		at = (at + externalAlignment - 1) &^ (externalAlignment - 1)
		if err := f(in, at); err != nil {
			return err
		}
		at += in.size()
	}
	return nil
}

// write writes the model file.
func (m *model) write(w io.Writer) error {
	b := append([]byte(nil), m.head...)
	b = protowire.AppendTag(b, fieldModelGraph, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(m.graphSize(true)))
	b = append(b, m.graphHead...)
	if _, err := w.Write(b); err != nil {
		return err
	}
	err := m.eachOffset(func(in *initializer, offset int64) error {
		meta, data := m.encode(in, offset)
		var frame []byte
		frame = protowire.AppendTag(frame, fieldGraphInitializer, protowire.BytesType)
		frame = protowire.AppendVarint(frame, uint64(int64(len(meta))+data))
		if _, err := w.Write(append(frame, meta...)); err != nil {
			return err
		}
		if data == 0 {
			return nil
		}
		return m.elements(w, in.t)
	})
	if err != nil {
		return err
	}
	if _, err := w.Write(m.graphTail); err != nil {
		return err
	}
	_, err = w.Write(m.tail)
	return err
}

// writeData writes the data file.
func (m *model) writeData(w io.Writer) error {
	at := int64(0)
	pad := make([]byte, externalAlignment)
	return m.eachOffset(func(in *initializer, offset int64) error {
		if !m.external(in) {
			return nil
		}
		if _, err := w.Write(pad[:offset-at]); err != nil {
			return err
		}
		at = offset + in.size()
		return m.elements(w, in.t)
	})
}
