package onnxfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/backend/onnxfile/check"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// externalFiles maps the data files beside a model. The zero dir refuses all.
type externalFiles struct {
	dir   string
	files map[string]*tensor.Storage
	maps  []*mapfile.File
}

// open maps a data file. Names that lead out of the model's folder are refused,
// also through symbolic links.
func (e *externalFiles) open(location string) (*tensor.Storage, error) {
	if e.dir == "" {
		return nil, fmt.Errorf("external data %q: only a model read from a file can have it", location)
	}
	if !filepath.IsLocal(location) || strings.ContainsAny(location, "\\\x00") {
		return nil, fmt.Errorf("external data %q is outside the model's folder", location)
	}
	if s, ok := e.files[location]; ok {
		return s, nil
	}
	path := filepath.Join(e.dir, location)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	base, err := filepath.EvalSymlinks(e.dir)
	if err != nil {
		return nil, err
	}
	if rel, err := filepath.Rel(base, real); err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("external data %q is outside the model's folder", location)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("external data %q is not a regular file", location)
	}
	b, err := mapfile.Open(real)
	if err != nil {
		return nil, err
	}
	s := tensor.NewStorage(b.Data)
	e.files[location] = s
	e.maps = append(e.maps, b)
	return s, nil
}

// unmarshalTensor decodes a TensorProto without copying its raw_data.
func unmarshalTensor(b []byte) (*onnxpb.TensorProto, error) {
	var rest, raw []byte
	hasRaw := false
	err := fields(b, func(num protowire.Number, typ protowire.Type, field, value []byte) error {
		if num == fieldTensorRawData && typ == protowire.BytesType {
			raw, hasRaw = value, true
		} else {
			rest = append(rest, field...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p := &onnxpb.TensorProto{}
	if err := proto.Unmarshal(rest, p); err != nil {
		return nil, err
	}
	if hasRaw {
		if p.RawData = raw; raw == nil {
			p.RawData = []byte{}
		}
	}
	return p, nil
}

// tensorProto makes a message of a tensor, without a name.
func tensorProto(t *tensor.Tensor) (*onnxpb.TensorProto, error) {
	in, err := newInitializer(&onnxpb.TensorProto{Name: proto.String("")}, t)
	if err != nil {
		return nil, err
	}
	p := &onnxpb.TensorProto{}
	if err := proto.Unmarshal(in.meta, p); err != nil {
		return nil, err
	}
	p.Name = nil
	if in.raw {
		var b bytes.Buffer
		if err := (&model{}).elements(&b, in.t); err != nil {
			return nil, err
		}
		p.RawData = append([]byte{}, b.Bytes()...)
	}
	return p, nil
}

// WriteTensor writes a TensorProto file, such as input_0.pb of an ONNX test case.
func WriteTensor(path, name string, t *tensor.Tensor) error {
	p, err := tensorProto(t)
	if err != nil {
		return err
	}
	p.Name = &name
	b, err := marshal(p)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// ReadTensor decodes a TensorProto file, such as input_0.pb of an ONNX test case.
func ReadTensor(path string) (name string, t *tensor.Tensor, err error) {
	b, err := mapfile.Open(path)
	if err != nil {
		return "", nil, err
	}
	p, err := unmarshalTensor(b.Data)
	if err != nil {
		return "", nil, err
	}
	t, err = tensorOf(p, &externalFiles{dir: filepath.Dir(path), files: map[string]*tensor.Storage{}})
	if err != nil {
		err = fmt.Errorf("tensor %q: %w", p.GetName(), err)
	}
	return p.GetName(), t, err
}

// fields walks the fields of a message: the whole field and, for length-delimited ones, its content.
func fields(b []byte, f func(num protowire.Number, typ protowire.Type, field, value []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		k := protowire.ConsumeFieldValue(num, typ, b[n:])
		if k < 0 {
			return protowire.ParseError(k)
		}
		var value []byte
		if typ == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b[n:])
		}
		if err := f(num, typ, b[:n+k], value); err != nil {
			return err
		}
		b = b[n+k:]
	}
	return nil
}

func tensorOf(p *onnxpb.TensorProto, ext *externalFiles) (*tensor.Tensor, error) {
	if err := check.Tensor(p); err != nil {
		return nil, err
	}
	d := tensor.FromONNX(int(p.GetDataType()))
	if d == tensor.Undefined {
		return nil, fmt.Errorf("element type %v is not supported", onnxpb.TensorProto_DataType(p.GetDataType()))
	}
	shape := append([]int64{}, p.Dims...)
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	if p.Segment != nil {
		return nil, fmt.Errorf("tensors in segments are not supported")
	}
	if d == tensor.String {
		s := make([]string, n)
		for i, b := range p.StringData {
			s[i] = string(b)
		}
		return tensor.Strings(shape, s), nil
	}
	size := packedSize(d, n)
	if p.GetDataLocation() == onnxpb.TensorProto_EXTERNAL {
		return externalTensor(p, ext, d, shape, size)
	}
	if len(p.RawData) > 0 || size == 0 {
		return tensor.New(d, shape, unpack(d, n, p.RawData)), nil
	}
	data, err := typedData(p, d)
	if err != nil {
		return nil, err
	}
	return tensor.New(d, shape, unpack(d, n, data)), nil
}

func externalTensor(p *onnxpb.TensorProto, ext *externalFiles, d tensor.DType, shape []int64, size int64) (*tensor.Tensor, error) {
	location, offset, length := "", int64(0), size
	for _, kv := range p.ExternalData {
		var err error
		switch kv.GetKey() {
		case "location":
			location = kv.GetValue()
		case "offset":
			offset, err = strconv.ParseInt(kv.GetValue(), 10, 64)
		case "length":
			length, err = strconv.ParseInt(kv.GetValue(), 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("external data: %v", err)
		}
	}
	s, err := ext.open(location)
	if err != nil {
		return nil, err
	}
	if length != size || offset < 0 || offset > s.Len() || size > s.Len()-offset {
		return nil, fmt.Errorf("external data %q: %d bytes at %d for %d, the file has %d", location, length, offset, size, s.Len())
	}
	t := &tensor.Tensor{DType: d, Shape: shape, Strides: tensor.ContiguousStrides(shape), Storage: s}
	if d.Bits() < 8 {
		return tensor.New(d, shape, unpack(d, t.NumElements(), s.Bytes()[offset:offset+size])), nil
	}
	if e := int64(d.Size()); offset%e == 0 {
		t.Offset = offset / e
	} else {
		t.Storage = tensor.NewStorage(s.Bytes()[offset : offset+size])
	}
	return t, nil
}

// typedData gathers elements from the field that goes with their type.
func typedData(p *onnxpb.TensorProto, d tensor.DType) (b []byte, err error) {
	le := binary.LittleEndian
	switch d {
	case tensor.Float32, tensor.Complex64:
		for _, v := range p.FloatData {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	case tensor.Float64, tensor.Complex128:
		for _, v := range p.DoubleData {
			b = le.AppendUint64(b, math.Float64bits(v))
		}
	case tensor.Int64:
		for _, v := range p.Int64Data {
			b = le.AppendUint64(b, uint64(v))
		}
	case tensor.Uint64:
		for _, v := range p.Uint64Data {
			b = le.AppendUint64(b, v)
		}
	case tensor.Uint32:
		for _, v := range p.Uint64Data {
			b = le.AppendUint32(b, uint32(v))
		}
	default:
		for _, v := range p.Int32Data {
			switch d.Size() {
			case 1:
				b = append(b, byte(v))
			case 2:
				b = le.AppendUint16(b, uint16(v))
			case 4:
				b = le.AppendUint32(b, uint32(v))
			default:
				return nil, fmt.Errorf("%v elements have no field", d)
			}
		}
	}
	return b, nil
}

// denseLimit bounds the bytes that a sparse tensor may unfold to.
const denseLimit = 1 << 28

// sparse unfolds a sparse tensor.
func sparse(p *onnxpb.SparseTensorProto, ext *externalFiles) (string, *tensor.Tensor, error) {
	name := p.GetValues().GetName()
	if p.Values == nil || p.Indices == nil {
		return name, nil, fmt.Errorf("sparse tensor %q lacks values or indices", name)
	}
	v, err := tensorOf(p.Values, ext)
	if err != nil {
		return name, nil, err
	}
	ix, err := tensorOf(p.Indices, ext)
	if err != nil {
		return name, nil, err
	}
	size := int64(v.DType.Size())
	if size == 0 {
		return name, nil, fmt.Errorf("sparse tensor %q: values of %v are not supported", name, v.DType)
	}
	n := size
	for _, s := range p.Dims {
		if s < 0 || s > 0 && n > denseLimit/s {
			return name, nil, fmt.Errorf("sparse tensor %q: shape %v is too large", name, p.Dims)
		}
		n *= s
	}
	r := int64(len(p.Dims))
	nnz := v.NumElements()
	linear := len(ix.Shape) == 1
	if v.DType == tensor.String || ix.DType != tensor.Int64 || len(v.Shape) != 1 ||
		!(linear && ix.Shape[0] == nnz || len(ix.Shape) == 2 && ix.Shape[0] == nnz && ix.Shape[1] == r) {
		return name, nil, fmt.Errorf("sparse tensor %q: values and indices do not fit", name)
	}
	out, src, at := make([]byte, n), v.Bytes(), ix.Int64s()
	for i := int64(0); i < nnz; i++ {
		pos := int64(0)
		if linear {
			pos = at[i]
		} else {
			for d := int64(0); d < r; d++ {
				if at[i*r+d] < 0 || at[i*r+d] >= p.Dims[d] {
					return name, nil, fmt.Errorf("sparse tensor %q: index out of range", name)
				}
				pos = pos*p.Dims[d] + at[i*r+d]
			}
		}
		if pos < 0 || pos >= n/size {
			return name, nil, fmt.Errorf("sparse tensor %q: index out of range", name)
		}
		copy(out[pos*size:(pos+1)*size], src[i*size:])
	}
	return name, tensor.New(v.DType, append([]int64{}, p.Dims...), out), nil
}
