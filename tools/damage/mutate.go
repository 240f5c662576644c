package main

import (
	"math"
	"math/rand"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// mutate changes a few fields of a model, of any message in it, without knowing what they mean.
func mutate(p *onnxpb.ModelProto, rng *rand.Rand) *onnxpb.ModelProto {
	p = proto.CloneOf(p)
	for range 1 + rng.Intn(3) {
		var all []protoreflect.Message
		collect(p.ProtoReflect(), &all)
		mutateMessage(all[rng.Intn(len(all))], rng)
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
	f := fields.Get(rng.Intn(fields.Len()))
	for range 3 { // mostly what is there
		if m.Has(f) {
			break
		}
		f = fields.Get(rng.Intn(fields.Len()))
	}
	switch {
	case f.IsList():
		mutateList(m.Mutable(f).List(), f, rng)
	case rng.Intn(4) == 0:
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
	i, j := rng.Intn(n), rng.Intn(n)
	switch rng.Intn(5) {
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

var (
	hostileInts   = []int64{0, 1, -1, 2, 3, 7, 16, -2, 100, -100, 1 << 31, 1 << 40, math.MaxInt64, math.MinInt64}
	hostileFloats = []float64{0, -1, 0.5, 1e30, math.NaN(), math.Inf(1), math.Inf(-1)}
	hostileNames  = []string{"", "x", "y", "a", "Relu", "If", "Loop", "Reshape", "Slice", "Constant", "linear", "nonexistent", "\x00", "::"}
)

// hostile makes a value of a field's kind, often one near what was there.
func hostile(f protoreflect.FieldDescriptor, was protoreflect.Value, rng *rand.Rand) protoreflect.Value {
	n := hostileInts[rng.Intn(len(hostileInts))]
	switch f.Kind() {
	case protoreflect.Int32Kind:
		if rng.Intn(2) == 0 {
			return protoreflect.ValueOfInt32(int32(was.Int()) + int32(rng.Intn(5)-2))
		}
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		if rng.Intn(2) == 0 {
			return protoreflect.ValueOfInt64(was.Int() + int64(rng.Intn(5)-2))
		}
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(hostileFloats[rng.Intn(len(hostileFloats))]))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(hostileFloats[rng.Intn(len(hostileFloats))])
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(hostileNames[rng.Intn(len(hostileNames))])
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(rng.Intn(values.Len())).Number())
	case protoreflect.BytesKind:
		b := append([]byte(nil), was.Bytes()...)
		if len(b) > 0 && rng.Intn(2) == 0 {
			b[rng.Intn(len(b))] ^= byte(1 << rng.Intn(8))
		} else {
			b = append(b, byte(rng.Intn(256)))
		}
		return protoreflect.ValueOfBytes(b)
	}
	return was
}
