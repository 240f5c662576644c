package onnxfile

import (
	"fmt"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"google.golang.org/protobuf/proto"
)

// typeProto translates a type, nil if the element type is unknown or ONNX has no such type.
func typeProto(t ssa.Type) *onnxpb.TypeProto {
	switch t := t.(type) {
	case *ssa.TensorType:
		if t.DType.ONNX() == 0 {
			return nil
		}
		p := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t.DType.ONNX()))}
		if t.Ranked {
			p.Shape = &onnxpb.TensorShapeProto{}
			for _, d := range t.Dims {
				p.Shape.Dim = append(p.Shape.Dim, dimProto(d))
			}
		}
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: p}}
	case *ssa.ListType:
		if e := typeProto(t.Elem); e != nil {
			return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{ElemType: e}}}
		}
	case *ssa.WrapType:
		if p := typeProto(t.Elem).GetTensorType(); p != nil && t.Name == ssa.Sparse {
			return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SparseTensorType{SparseTensorType: &onnxpb.TypeProto_SparseTensor{ElemType: p.ElemType, Shape: p.Shape}}}
		}
	case *ssa.OptionalType:
		if e := typeProto(t.Elem); e != nil {
			return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OptionalType{OptionalType: &onnxpb.TypeProto_Optional{ElemType: e}}}
		}
	case *ssa.DictType:
		key, known := map[ssa.Type]onnxpb.TensorProto_DataType{ssa.IntType: onnxpb.TensorProto_INT64, ssa.StrType: onnxpb.TensorProto_STRING}[t.Key]
		if e := typeProto(t.Value); e != nil && known {
			return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_MapType{MapType: &onnxpb.TypeProto_Map{KeyType: proto.Int32(int32(key)), ValueType: e}}}
		}
	}
	return nil
}

func dimProto(d sym.Expr) *onnxpb.TensorShapeProto_Dimension {
	p := &onnxpb.TensorShapeProto_Dimension{}
	if n, ok := d.Int(); ok {
		p.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}
	} else {
		p.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.String()}
	}
	return p
}

// typeOf translates a TypeProto. Dims without a value become symbols of their own.
func typeOf(p *onnxpb.TypeProto, m *ssa.Module) (ssa.Type, error) {
	return typeOfNested(p, m, 0)
}

func typeOfNested(p *onnxpb.TypeProto, m *ssa.Module, depth int) (ssa.Type, error) {
	if depth > 8 {
		return nil, fmt.Errorf("type is nested too deeply")
	}
	switch v := p.GetValue().(type) {
	case nil:
		return ssa.AnyTensor, nil
	case *onnxpb.TypeProto_TensorType:
		n := int(v.TensorType.GetElemType())
		d := tensor.FromONNX(n)
		if d == tensor.Undefined && n != 0 {
			return nil, fmt.Errorf("element type %v is not supported", onnxpb.TensorProto_DataType(n))
		}
		if v.TensorType.Shape == nil {
			return ssa.Unranked(d), nil
		}
		dims := make([]sym.Expr, len(v.TensorType.Shape.Dim))
		for i, dp := range v.TensorType.Shape.Dim {
			dims[i] = dimOf(dp, m)
		}
		return ssa.Tensor(d, dims...), nil
	case *onnxpb.TypeProto_SparseTensorType: // an operand of com.microsoft::SparseToDenseMatMul
		s := v.SparseTensorType
		dense := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: s.ElemType, Shape: s.Shape}}}
		e, err := typeOfNested(dense, m, depth+1)
		return &ssa.WrapType{Name: ssa.Sparse, Elem: e}, err
	case *onnxpb.TypeProto_SequenceType:
		e, err := typeOfNested(v.SequenceType.GetElemType(), m, depth+1)
		return &ssa.ListType{Elem: e}, err
	case *onnxpb.TypeProto_OptionalType:
		e, err := typeOfNested(v.OptionalType.GetElemType(), m, depth+1)
		return &ssa.OptionalType{Elem: e}, err
	case *onnxpb.TypeProto_MapType: // of numbers or strings, by their names: what a ZipMap gives
		e, err := typeOfNested(v.MapType.GetValueType(), m, depth+1)
		switch key := onnxpb.TensorProto_DataType(v.MapType.GetKeyType()); key {
		case onnxpb.TensorProto_INT64:
			return &ssa.DictType{Key: ssa.IntType, Value: e}, err
		case onnxpb.TensorProto_STRING:
			return &ssa.DictType{Key: ssa.StrType, Value: e}, err
		default:
			return nil, fmt.Errorf("keys of a map are INT64 or STRING, not %v: no operator takes others, and onnxruntime does not load the file", key)
		}
	}
	return nil, fmt.Errorf("onnxruntime has no opaque types: it does not load the file either")
}

// dimOf reads a dim_param as the writer writes it; one that is no expression is a symbol with that name's letters.
func dimOf(p *onnxpb.TensorShapeProto_Dimension, m *ssa.Module) sym.Expr {
	switch v := p.GetValue().(type) {
	case *onnxpb.TensorShapeProto_Dimension_DimValue:
		if v.DimValue >= 0 {
			return sym.Const(v.DimValue)
		}
	case *onnxpb.TensorShapeProto_Dimension_DimParam:
		if len(v.DimParam) < 1000 {
			if e, err := sym.Parse(v.DimParam); err == nil {
				e.Symbols(m.NoteSymbol)
				return e
			}
		}
		if v.DimParam != "" {
			name := cleanSymbol(v.DimParam)
			m.NoteSymbol(name)
			return sym.Symbol(name, 0)
		}
	}
	return m.FreshSymbol("d", 0)
}

// noteSymbols keeps the names of sizes that a graph states from those that are made for unknown ones.
func noteSymbols(g *onnxpb.GraphProto, m *ssa.Module) {
	for _, list := range [...][]*onnxpb.ValueInfoProto{g.Input, g.ValueInfo, g.Output} {
		for _, v := range list {
			for _, s := range []*onnxpb.TensorShapeProto{v.GetType().GetTensorType().GetShape(), v.GetType().GetSparseTensorType().GetShape()} {
				for _, d := range s.GetDim() {
					if d.GetDimParam() != "" {
						dimOf(d, m)
					}
				}
			}
		}
	}
}

func cleanSymbol(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '.')) {
			b[i] = '_'
		}
	}
	return string(b)
}
