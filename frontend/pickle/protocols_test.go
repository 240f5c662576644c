package pickle

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aton-project/aton/ssa/tensor"
)

// protocols are what Python 3's pickle.dumps gives for a value in each protocol.
var protocols = []struct {
	name     string
	protocol int
	data     string
}{
	{"nested", 0, "(dp0\x0aVa\x0ap1\x0a(lp2\x0aI1\x0aaI-2\x0aaI300\x0aaI70000\x0aaL1099511627776L\x0aaL1180591620717411303424L\x0aaL-1180591620717411303424L\x0aasVb\x0ap3\x0a(I01\x0aI00\x0aNtp4\x0asVc\x0ap5\x0aF1.5\x0asVd\x0ap6\x0aVtext\x0ap7\x0asVe\x0ap8\x0ac_codecs\x0aencode\x0ap9\x0a(Vbytes\x0ap10\x0aVlatin1\x0ap11\x0atp12\x0aRp13\x0as."},
	{"nested", 1, "}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00L1099511627776L\x0aL1180591620717411303424L\x0aL-1180591620717411303424L\x0aeX\x01\x00\x00\x00bq\x03(I01\x0aI00\x0aNtq\x04X\x01\x00\x00\x00cq\x05G?\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00dq\x06X\x04\x00\x00\x00textq\x07X\x01\x00\x00\x00eq\x08c_codecs\x0aencode\x0aq\x09(X\x05\x00\x00\x00bytesq\x0aX\x06\x00\x00\x00latin1q\x0btq\x0cRq\x0du."},
	{"nested", 2, "\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xc0eX\x01\x00\x00\x00bq\x03\x88\x89N\x87q\x04X\x01\x00\x00\x00cq\x05G?\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00dq\x06X\x04\x00\x00\x00textq\x07X\x01\x00\x00\x00eq\x08c_codecs\x0aencode\x0aq\x09X\x05\x00\x00\x00bytesq\x0aX\x06\x00\x00\x00latin1q\x0b\x86q\x0cRq\x0du."},
	{"nested", 3, "\x80\x03}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xc0eX\x01\x00\x00\x00bq\x03\x88\x89N\x87q\x04X\x01\x00\x00\x00cq\x05G?\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00dq\x06X\x04\x00\x00\x00textq\x07X\x01\x00\x00\x00eq\x08C\x05bytesq\x09u."},
	{"nested", 4, "\x80\x04\x95g\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xc0e\x8c\x01b\x94\x88\x89N\x87\x94\x8c\x01c\x94G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x01d\x94\x8c\x04text\x94\x8c\x01e\x94C\x05bytes\x94u."},
	{"nested", 5, "\x80\x05\x95g\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xc0e\x8c\x01b\x94\x88\x89N\x87\x94\x8c\x01c\x94G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x01d\x94\x8c\x04text\x94\x8c\x01e\x94C\x05bytes\x94u."},
	{"empty", 0, "(lp0\x0a(ta(lp1\x0aa(dp2\x0aac__builtin__\x0aset\x0ap3\x0a((lp4\x0atp5\x0aRp6\x0aac__builtin__\x0afrozenset\x0ap7\x0a((lp8\x0atp9\x0aRp10\x0aa."},
	{"empty", 1, "]q\x00()]q\x01}q\x02c__builtin__\x0aset\x0aq\x03(]q\x04tq\x05Rq\x06c__builtin__\x0afrozenset\x0aq\x07(]q\x08tq\x09Rq\x0ae."},
	{"empty", 2, "\x80\x02]q\x00()]q\x01}q\x02c__builtin__\x0aset\x0aq\x03]q\x04\x85q\x05Rq\x06c__builtin__\x0afrozenset\x0aq\x07]q\x08\x85q\x09Rq\x0ae."},
	{"empty", 3, "\x80\x03]q\x00()]q\x01}q\x02cbuiltins\x0aset\x0aq\x03]q\x04\x85q\x05Rq\x06cbuiltins\x0afrozenset\x0aq\x07]q\x08\x85q\x09Rq\x0ae."},
	{"empty", 4, "\x80\x04\x95\x0f\x00\x00\x00\x00\x00\x00\x00]\x94()]\x94}\x94\x8f\x94(\x91\x94e."},
	{"empty", 5, "\x80\x05\x95\x0f\x00\x00\x00\x00\x00\x00\x00]\x94()]\x94}\x94\x8f\x94(\x91\x94e."},
	{"sets", 0, "(lp0\x0ac__builtin__\x0aset\x0ap1\x0a((lp2\x0aI1\x0aatp3\x0aRp4\x0aac__builtin__\x0afrozenset\x0ap5\x0a((lp6\x0aI2\x0aatp7\x0aRp8\x0aa."},
	{"sets", 1, "]q\x00(c__builtin__\x0aset\x0aq\x01(]q\x02K\x01atq\x03Rq\x04c__builtin__\x0afrozenset\x0aq\x05(]q\x06K\x02atq\x07Rq\x08e."},
	{"sets", 2, "\x80\x02]q\x00(c__builtin__\x0aset\x0aq\x01]q\x02K\x01a\x85q\x03Rq\x04c__builtin__\x0afrozenset\x0aq\x05]q\x06K\x02a\x85q\x07Rq\x08e."},
	{"sets", 3, "\x80\x03]q\x00(cbuiltins\x0aset\x0aq\x01]q\x02K\x01a\x85q\x03Rq\x04cbuiltins\x0afrozenset\x0aq\x05]q\x06K\x02a\x85q\x07Rq\x08e."},
	{"sets", 4, "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00]\x94(\x8f\x94(K\x01\x90(K\x02\x91\x94e."},
	{"sets", 5, "\x80\x05\x95\x10\x00\x00\x00\x00\x00\x00\x00]\x94(\x8f\x94(K\x01\x90(K\x02\x91\x94e."},
	{"shared", 0, "(lp0\x0a(lp1\x0aI1\x0aaag1\x0aa(g1\x0aI1\x0atp2\x0aa(I1\x0aI2\x0aI3\x0atp3\x0aa(I1\x0aI2\x0aI3\x0aI4\x0atp4\x0aa."},
	{"shared", 1, "]q\x00(]q\x01K\x01ah\x01(h\x01K\x01tq\x02(K\x01K\x02K\x03tq\x03(K\x01K\x02K\x03K\x04tq\x04e."},
	{"shared", 2, "\x80\x02]q\x00(]q\x01K\x01ah\x01h\x01K\x01\x86q\x02K\x01K\x02K\x03\x87q\x03(K\x01K\x02K\x03K\x04tq\x04e."},
	{"shared", 3, "\x80\x03]q\x00(]q\x01K\x01ah\x01h\x01K\x01\x86q\x02K\x01K\x02K\x03\x87q\x03(K\x01K\x02K\x03K\x04tq\x04e."},
	{"shared", 4, "\x80\x04\x95%\x00\x00\x00\x00\x00\x00\x00]\x94(]\x94K\x01ah\x01h\x01K\x01\x86\x94K\x01K\x02K\x03\x87\x94(K\x01K\x02K\x03K\x04t\x94e."},
	{"shared", 5, "\x80\x05\x95%\x00\x00\x00\x00\x00\x00\x00]\x94(]\x94K\x01ah\x01h\x01K\x01\x86\x94K\x01K\x02K\x03\x87\x94(K\x01K\x02K\x03K\x04t\x94e."},
	{"ordered", 0, "ccollections\x0aOrderedDict\x0ap0\x0a(tRp1\x0aVk\x0ap2\x0aI1\x0as."},
	{"ordered", 1, "ccollections\x0aOrderedDict\x0aq\x00)Rq\x01X\x01\x00\x00\x00kq\x02K\x01s."},
	{"ordered", 2, "\x80\x02ccollections\x0aOrderedDict\x0aq\x00)Rq\x01X\x01\x00\x00\x00kq\x02K\x01s."},
	{"ordered", 3, "\x80\x03ccollections\x0aOrderedDict\x0aq\x00)Rq\x01X\x01\x00\x00\x00kq\x02K\x01s."},
	{"ordered", 4, "\x80\x04\x95)\x00\x00\x00\x00\x00\x00\x00\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01k\x94K\x01s."},
	{"ordered", 5, "\x80\x05\x95)\x00\x00\x00\x00\x00\x00\x00\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01k\x94K\x01s."},
	{"long", 0, "(lp0\x0aVxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x0ap1\x0aac_codecs\x0aencode\x0ap2\x0a(Vyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\x0ap3\x0aVlatin1\x0ap4\x0atp5\x0aRp6\x0aa(lp7\x0aI0\x0aaI1\x0aaI2\x0aaa."},
	{"long", 1, "]q\x00(X,\x01\x00\x00xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxq\x01c_codecs\x0aencode\x0aq\x02(X,\x01\x00\x00yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyq\x03X\x06\x00\x00\x00latin1q\x04tq\x05Rq\x06]q\x07(K\x00K\x01K\x02ee."},
	{"long", 2, "\x80\x02]q\x00(X,\x01\x00\x00xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxq\x01c_codecs\x0aencode\x0aq\x02X,\x01\x00\x00yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyq\x03X\x06\x00\x00\x00latin1q\x04\x86q\x05Rq\x06]q\x07(K\x00K\x01K\x02ee."},
	{"long", 3, "\x80\x03]q\x00(X,\x01\x00\x00xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxq\x01B,\x01\x00\x00yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyq\x02]q\x03(K\x00K\x01K\x02ee."},
	{"long", 4, "\x80\x04\x95s\x02\x00\x00\x00\x00\x00\x00]\x94(X,\x01\x00\x00xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x94B,\x01\x00\x00yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\x94]\x94(K\x00K\x01K\x02ee."},
	{"long", 5, "\x80\x05\x95s\x02\x00\x00\x00\x00\x00\x00]\x94(X,\x01\x00\x00xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x94B,\x01\x00\x00yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\x94]\x94(K\x00K\x01K\x02ee."},
	{"escapes", 0, "Va\\u005cb \\u20ac \\U0001f600\\u000a\x0ap0\x0a."},
	{"escapes", 1, "X\x0d\x00\x00\x00a\\b \xe2\x82\xac \xf0\x9f\x98\x80\x0aq\x00."},
	{"escapes", 2, "\x80\x02X\x0d\x00\x00\x00a\\b \xe2\x82\xac \xf0\x9f\x98\x80\x0aq\x00."},
	{"escapes", 3, "\x80\x03X\x0d\x00\x00\x00a\\b \xe2\x82\xac \xf0\x9f\x98\x80\x0aq\x00."},
	{"escapes", 4, "\x80\x04\x95\x11\x00\x00\x00\x00\x00\x00\x00\x8c\x0da\\b \xe2\x82\xac \xf0\x9f\x98\x80\x0a\x94."},
	{"escapes", 5, "\x80\x05\x95\x11\x00\x00\x00\x00\x00\x00\x00\x8c\x0da\\b \xe2\x82\xac \xf0\x9f\x98\x80\x0a\x94."},
	{"accent", 0, "V\xe9\x0ap0\x0a."},
	{"accent", 1, "X\x02\x00\x00\x00\xc3\xa9q\x00."},
	{"accent", 2, "\x80\x02X\x02\x00\x00\x00\xc3\xa9q\x00."},
	{"accent", 3, "\x80\x03X\x02\x00\x00\x00\xc3\xa9q\x00."},
	{"accent", 4, "\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94."},
	{"accent", 5, "\x80\x05\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94."},
}

// python spells a value as Python does.
func python(v any) string {
	list := func(items []any) string {
		var s []string
		for _, i := range items {
			s = append(s, python(i))
		}
		return strings.Join(s, ", ")
	}
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return "'" + v + "'"
	case Bytes:
		return "b'" + string(v) + "'"
	case *big.Int:
		return v.String()
	case Tuple:
		return "(" + list(v) + ")"
	case *List:
		return "[" + list(v.Items) + "]"
	case *Set:
		return "{" + list(v.Items) + "}"
	case *Dict:
		var s []string
		for i := range v.Keys {
			s = append(s, python(v.Keys[i])+": "+python(v.Values[i]))
		}
		return "{" + strings.Join(s, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// TestProtocols reads the same values whichever protocol they are written in.
func TestProtocols(t *testing.T) {
	want := map[string]string{
		"nested":  "{'a': [1, -2, 300, 70000, 1099511627776, 1180591620717411303424, -1180591620717411303424], 'b': (True, False, None), 'c': 1.5, 'd': 'text', 'e': b'bytes'}",
		"empty":   "[(), [], {}, {}, {}]",
		"sets":    "[{1}, {2}]",
		"shared":  "[[1], [1], ([1], 1), (1, 2, 3), (1, 2, 3, 4)]",
		"ordered": "{'k': 1}",
		"long":    "['" + strings.Repeat("x", 300) + "', b'" + strings.Repeat("y", 300) + "', [0, 1, 2]]",
		"escapes": "'a\\b € 😀\n'",
		"accent":  "'é'",
	}
	for _, c := range protocols {
		ts := &Tensors{}
		v, n, err := (&Reader{Call: ts.Call}).Read([]byte(c.data))
		if err != nil || n != len(c.data) {
			t.Errorf("%s in protocol %d: %d of %d bytes, %v", c.name, c.protocol, n, len(c.data), err)
			continue
		}
		if diff := cmp.Diff(want[c.name], python(v)); diff != "" {
			t.Errorf("%s in protocol %d (-want +got):\n%s", c.name, c.protocol, diff)
		}
	}
}

// TestCutShort reads every beginning of every pickle: each is an error with its place, none is a value.
func TestCutShort(t *testing.T) {
	for _, c := range protocols {
		for n := range len(c.data) {
			ts := &Tensors{}
			_, _, err := (&Reader{Call: ts.Call}).Read([]byte(c.data[:n]))
			var e *Error
			if !errors.As(err, &e) || e.Offset > n || errors.Unwrap(err) == nil {
				t.Fatalf("%s in protocol %d, %d bytes of %d: %v", c.name, c.protocol, n, len(c.data), err)
			}
		}
	}
}

// storage is the persistent id of a storage of four elements, as a tuple.
func storage(class, key string, n int64) Tuple {
	return Tuple{"storage", Global{"torch", class}, key, "cpu", n}
}

func TestStorages(t *testing.T) {
	load := func(key string) ([]byte, error) {
		if key == "gone" {
			return nil, errors.New("there is no such record")
		}
		return []byte{0, 0, 128, 63, 0, 0, 0, 64}, nil // 1, 2 as float32
	}
	for _, c := range []struct {
		id   any
		want string
	}{
		{Tuple{"storage"}, "not a storage"},
		{int64(3), "not a storage"},
		{Tuple{"module", Global{"torch", "FloatStorage"}, "0", "cpu", int64(2)}, `of kind "module"`},
		{storage("QUInt4x2Storage", "0", 2), "is not supported"},
		{storage("Float", "0", 2), "is not supported"},
		{storage("FloatStorage", "../../etc/passwd", 2), "is not a record name"},
		{storage("FloatStorage", "", 2), "is not a record name"},
		{storage("FloatStorage", "gone", 2), "no such record"},
		{storage("FloatStorage", "0", 3), "has 8 bytes, not 3 elements"},
		{storage("FloatStorage", "0", -1), "has -1 elements"},
		{storage("FloatStorage", "0", 1<<62), "elements"},
		{storage("DoubleStorage", "known", 1), "is Float and Double"},
		{storage("FloatStorage", "known", 5), "has 2 and 5 elements"},
	} {
		r := &Tensors{Load: load}
		if _, err := r.Persistent(storage("FloatStorage", "known", 2)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Persistent(c.id); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.id, err, c.want)
		}
	}
	// bytes of a machine with the other end first
	r := &Tensors{Load: func(string) ([]byte, error) { return []byte{63, 128, 0, 0, 64, 0, 0, 0}, nil }, BigEndian: true}
	s, err := r.Persistent(storage("FloatStorage", "0", 2))
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := r.Call(Global{"torch._utils", "_rebuild_tensor_v2"}, Tuple{s, int64(0), Tuple{int64(2)}, Tuple{int64(1)}, false, &Dict{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := v.(*tensor.Tensor).Float64s(); got[0] != 1 || got[1] != 2 {
		t.Errorf("big-endian floats are %v", got)
	}
	if r.Storage("0") != s || r.Storage("1") != nil {
		t.Error("a storage is not found by its key")
	}
}

// TestCalls has what the state dicts of PyTorch call, with arguments that are right and wrong.
func TestCalls(t *testing.T) {
	one := &List{[]any{Tuple{"k", int64(1)}}}
	utils := func(name string) Global { return Global{"torch._utils", name} }
	for _, c := range []struct {
		g    Global
		args Tuple
		want string
	}{
		{Global{"collections", "OrderedDict"}, Tuple{one}, "{'k': 1}"},
		{Global{"torch", "Size"}, Tuple{Tuple{int64(2), int64(3)}}, "(2, 3)"},
		{Global{"torch", "Size"}, nil, "()"},
		{Global{"torch", "device"}, Tuple{"cuda", int64(1)}, "{cuda:1}"},
		{Global{"_codecs", "encode"}, Tuple{"é", "latin1"}, "b'\xe9'"},
		{Global{"torch.serialization", "_get_layout"}, Tuple{"torch.strided"}, "0"},
		{Global{"torch._tensor", "_rebuild_from_type_v2"}, Tuple{Global{"torch", "Size"}, nil, Tuple{Tuple{int64(4)}}, nil}, "(4)"},
		{Global{"torch._tensor", "_rebuild_from_type_v2"}, Tuple{int64(1), nil, Tuple{}, nil}, "error: bad arguments"},
		{Global{"torch._tensor", "_rebuild_from_type_v2"}, Tuple{Global{"torch._tensor", "_rebuild_from_type_v2"}, nil, Tuple{}, nil}, "error: refers to itself"},
		{utils("_rebuild_tensor_v2"), Tuple{int64(1)}, "error: has 1 arguments"},
		{utils("_rebuild_tensor_v2"), Tuple{int64(1), int64(0), Tuple{}, Tuple{}}, "error: the storage is"},
		{utils("_rebuild_tensor_v3"), Tuple{int64(1)}, "error: has 1 arguments"},
		{utils("_rebuild_tensor_v3"), Tuple{nil, nil, nil, nil, nil, nil, "x"}, "error: the element type is"},
		{utils("_rebuild_qtensor"), Tuple{int64(1)}, "error: has 1 arguments"},
		{utils("_rebuild_parameter"), nil, "error: has no argument"},
		{utils("_rebuild_parameter"), Tuple{"x"}, "error: the parameter is"},
		{utils("_rebuild_sparse_tensor"), nil, "error: sparse tensors are not supported"},
		{utils("_rebuild_nested_tensor"), nil, "error: this kind of tensor is not supported"},
	} {
		v, known, err := (&Tensors{}).Call(c.g, c.args)
		got := python(v)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !known || !strings.HasPrefix(got, c.want) {
			t.Errorf("%v%s is %s, want %s", c.g, python(c.args), got, c.want)
		}
	}
	if _, known, _ := (&Tensors{}).Call(Global{"os", "system"}, Tuple{"true"}); known {
		t.Error("os.system is known")
	}
}

func TestDTypes(t *testing.T) {
	for name, want := range map[string]tensor.DType{
		"float": tensor.Float32, "float64": tensor.Float64, "half": tensor.Float16, "bfloat16": tensor.BFloat16, "uint8": tensor.Uint8,
		"int8": tensor.Int8, "short": tensor.Int16, "int32": tensor.Int32, "long": tensor.Int64, "bool": tensor.Bool, "chalf": tensor.Complex32,
		"cfloat": tensor.Complex64, "complex128": tensor.Complex128, "float8_e5m2": tensor.Float8E5M2, "float8_e4m3fn": tensor.Float8E4M3FN,
		"float8_e5m2fnuz": tensor.Float8E5M2FNUZ, "float8_e4m3fnuz": tensor.Float8E4M3FNUZ, "uint16": tensor.Uint16, "uint32": tensor.Uint32,
		"uint64": tensor.Uint64, "qint8": tensor.QInt8, "quint8": tensor.QUint8, "qint32": tensor.QInt32,
	} {
		if got, ok := DType(Global{"torch", name}); !ok || got != want {
			t.Errorf("torch.%s is %v", name, got)
		}
	}
	if _, ok := DType(Global{"torch", "strided"}); ok {
		t.Error("torch.strided is an element type")
	}
	for v, want := range map[any]tensor.DType{int64(6): tensor.Float32, int64(4): tensor.Int64, DTypeValue{tensor.Bool}: tensor.Bool} {
		if got, ok := DType(v); !ok || got != want {
			t.Errorf("%v is %v", v, got)
		}
	}
	for _, v := range []any{int64(-1), int64(99), "float32", nil} {
		if got, ok := DType(v); ok {
			t.Errorf("%v is the element type %v", v, got)
		}
	}
}
