package check

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

func (c *checker) tensor(t *onnxpb.TensorProto, what string, at *place) {
	if err := Tensor(t); err != nil {
		c.report(at, IDTensor, "", "%s%v", what, err)
	}
}

func (c *checker) sparse(t *onnxpb.SparseTensorProto, what string, at *place) {
	switch {
	case t.Values == nil || t.Indices == nil:
		c.report(at, IDTensor, "", "%sit lacks values or indices", what)
	case len(t.Dims) == 0:
		c.report(at, IDTensor, "", "%sit has no shape", what)
	default:
		c.tensor(t.Values, what+"values: ", at)
		c.tensor(t.Indices, what+"indices: ", at)
	}
}

// layout says how elements of a type are stored.
type layout struct {
	bits  int64 // of an element in raw_data
	field string
	// each is how many entries of the field make an element, below 0: how many elements are in an entry
	each int64
}

func layoutOf(t onnxpb.TensorProto_DataType) (layout, bool) {
	switch t {
	case onnxpb.TensorProto_FLOAT:
		return layout{32, "float_data", 1}, true
	case onnxpb.TensorProto_COMPLEX64:
		return layout{64, "float_data", 2}, true
	case onnxpb.TensorProto_DOUBLE:
		return layout{64, "double_data", 1}, true
	case onnxpb.TensorProto_COMPLEX128:
		return layout{128, "double_data", 2}, true
	case onnxpb.TensorProto_INT64:
		return layout{64, "int64_data", 1}, true
	case onnxpb.TensorProto_UINT64:
		return layout{64, "uint64_data", 1}, true
	case onnxpb.TensorProto_UINT32:
		return layout{32, "uint64_data", 1}, true
	case onnxpb.TensorProto_STRING:
		return layout{0, "string_data", 1}, true
	case onnxpb.TensorProto_INT32:
		return layout{32, "int32_data", 1}, true
	case onnxpb.TensorProto_INT16, onnxpb.TensorProto_UINT16, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_BFLOAT16:
		return layout{16, "int32_data", 1}, true
	case onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT8, onnxpb.TensorProto_BOOL, onnxpb.TensorProto_FLOAT8E4M3FN, onnxpb.TensorProto_FLOAT8E4M3FNUZ,
		onnxpb.TensorProto_FLOAT8E5M2, onnxpb.TensorProto_FLOAT8E5M2FNUZ, onnxpb.TensorProto_FLOAT8E8M0:
		return layout{8, "int32_data", 1}, true
	case onnxpb.TensorProto_UINT4, onnxpb.TensorProto_INT4, onnxpb.TensorProto_FLOAT4E2M1:
		return layout{4, "int32_data", -2}, true
	case onnxpb.TensorProto_UINT2, onnxpb.TensorProto_INT2:
		return layout{2, "int32_data", -4}, true
	case onnxpb.TensorProto_FLOAT6E2M3, onnxpb.TensorProto_FLOAT6E3M2:
		return layout{6, "int32_data", 0}, true // how they are packed into a field is not looked at
	}
	return layout{}, false
}

// Tensor checks that a tensor's elements are in one field, the one that goes with their type, and that there are as
// many as the shape says. Whether a data file beside the model has them is for who opens it.
func Tensor(t *onnxpb.TensorProto) error {
	l, ok := layoutOf(onnxpb.TensorProto_DataType(t.GetDataType()))
	if !ok {
		return fmt.Errorf("it has the element type %d, which does not exist", t.GetDataType())
	}
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 || d > 0 && n > math.MaxInt64/128/d {
			return fmt.Errorf("impossible shape %v", t.Dims)
		}
		n *= d
	}
	fields := map[string]int64{}
	for _, f := range [...]struct {
		name string
		n    int
	}{{"float_data", len(t.FloatData)}, {"int32_data", len(t.Int32Data)}, {"string_data", len(t.StringData)}, {"int64_data", len(t.Int64Data)},
		{"double_data", len(t.DoubleData)}, {"uint64_data", len(t.Uint64Data)}} {
		if f.n > 0 {
			fields[f.name] = int64(f.n)
		}
	}
	raw := t.RawData != nil && (len(t.RawData) > 0 || len(fields) == 0) // an empty field is none
	switch {
	case t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL:
		return externalProblem(t, len(fields) > 0 || raw)
	case raw && len(fields) > 0 || len(fields) > 1:
		return fmt.Errorf("its elements are in several fields")
	case n == 0 && (len(fields) > 0 || len(t.RawData) > 0):
		return fmt.Errorf("it has elements, and its shape %v says none", t.Dims)
	case n == 0:
		return nil
	case raw && l.bits == 0:
		return fmt.Errorf("strings cannot be in raw_data")
	case raw:
		if want := (n*l.bits + 7) / 8; int64(len(t.RawData)) != want {
			return fmt.Errorf("%d bytes for shape %v, which takes %d", len(t.RawData), t.Dims, want)
		}
		return nil
	case len(fields) == 0:
		return fmt.Errorf("it has no elements, and its shape is %v", t.Dims)
	}
	have, ok := fields[l.field]
	if !ok {
		return fmt.Errorf("elements of type %v belong into %s", onnxpb.TensorProto_DataType(t.GetDataType()), l.field)
	}
	want := n * l.each
	if l.each < 0 {
		want = (n - l.each - 1) / -l.each
	}
	if l.each != 0 && have != want {
		return fmt.Errorf("%d entries of %s for shape %v, which takes %d", have, l.field, t.Dims, want)
	}
	return nil
}

func externalProblem(t *onnxpb.TensorProto, inside bool) error {
	if inside {
		return fmt.Errorf("its elements are in the model and in a data file")
	}
	for _, kv := range t.ExternalData {
		switch kv.GetKey() {
		case "location":
			if kv.GetValue() != "" {
				return nil
			}
		}
	}
	return fmt.Errorf("its elements are in a data file that is not named")
}
