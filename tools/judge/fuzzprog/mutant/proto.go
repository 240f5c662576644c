package mutant

import (
	"math/rand/v2"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// Model changes a few fields of an ONNX model, of any message in it, without knowing what they mean.
func Model(p *onnxpb.ModelProto, rng *rand.Rand) *onnxpb.ModelProto {
	p = proto.CloneOf(p)
	for range 1 + rng.IntN(3) {
		var all []protoreflect.Message
		collect(p.ProtoReflect(), &all)
		mutateMessage(all[rng.IntN(len(all))], rng)
	}
	return p
}

// collect lists a message and those in it.
func collect(m protoreflect.Message, to *[]protoreflect.Message) {
	*to = append(*to, m)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() { // in this order: Range has none
		f := fields.Get(i)
		if f.Message() == nil || !m.Has(f) {
			continue
		}
		if !f.IsList() {
			collect(m.Get(f).Message(), to)
			continue
		}
		for list, k := m.Get(f).List(), 0; k < list.Len(); k++ {
			collect(list.Get(k).Message(), to)
		}
	}
}

func mutateMessage(m protoreflect.Message, rng *rand.Rand) {
	fields := m.Descriptor().Fields()
	f := fields.Get(rng.IntN(fields.Len()))
	for range 3 { // mostly what is there
		if m.Has(f) {
			break
		}
		f = fields.Get(rng.IntN(fields.Len()))
	}
	switch {
	case f.IsList():
		mutateList(m.Mutable(f).List(), f, rng)
	case rng.IntN(4) == 0:
		m.Clear(f)
	case f.Message() != nil:
		m.Mutable(f)
	default:
		m.Set(f, hostile(f, m.Get(f), rng))
	}
}

func mutateList(l protoreflect.List, f protoreflect.FieldDescriptor, rng *rand.Rand) {
	n := l.Len()
	if n == 0 {
		if f.Message() != nil {
			l.AppendMutable()
		} else {
			l.Append(hostile(f, l.NewElement(), rng))
		}
		return
	}
	i, j := rng.IntN(n), rng.IntN(n)
	switch rng.IntN(5) {
	case 0: // drop
		for k := i; k+1 < n; k++ {
			l.Set(k, l.Get(k+1))
		}
		l.Truncate(n - 1)
	case 1: // swap
		a, b := l.Get(i), l.Get(j)
		l.Set(i, b)
		l.Set(j, a)
	case 2: // repeat
		if f.Message() != nil {
			l.Append(protoreflect.ValueOfMessage(proto.Clone(l.Get(i).Message().Interface()).ProtoReflect()))
		} else {
			l.Append(l.Get(i))
		}
	case 3: // cut off
		l.Truncate(i)
	default:
		if f.Message() != nil {
			mutateMessage(l.Get(i).Message(), rng)
		} else {
			l.Set(i, hostile(f, l.Get(i), rng))
		}
	}
}

// hostile makes a value of a field's kind, often one near what was there.
func hostile(f protoreflect.FieldDescriptor, was protoreflect.Value, rng *rand.Rand) protoreflect.Value {
	n := hostileInts[rng.IntN(len(hostileInts))]
	switch f.Kind() {
	case protoreflect.Int32Kind:
		if rng.IntN(2) == 0 {
			return protoreflect.ValueOfInt32(int32(was.Int()) + int32(rng.IntN(5)-2))
		}
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		if rng.IntN(2) == 0 {
			return protoreflect.ValueOfInt64(was.Int() + int64(rng.IntN(5)-2))
		}
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(hostileFloats[rng.IntN(len(hostileFloats))]))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(hostileFloats[rng.IntN(len(hostileFloats))])
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(hostileNames[rng.IntN(len(hostileNames))])
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(rng.IntN(values.Len())).Number())
	case protoreflect.BytesKind:
		b := append([]byte(nil), was.Bytes()...)
		if len(b) > 0 && rng.IntN(2) == 0 {
			b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
		} else {
			b = append(b, byte(rng.IntN(256)))
		}
		return protoreflect.ValueOfBytes(b)
	}
	return was
}
