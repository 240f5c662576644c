package pickle

import (
	"math/big"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	r := &Reader{}
	for _, c := range []struct {
		data string
		want func(v any) bool
	}{
		{"\x80\x02)." /* () */, func(v any) bool { x, ok := v.(Tuple); return ok && len(x) == 0 }},
		{"\x80\x02K\x05.", func(v any) bool { return v == int64(5) }},
		{"\x80\x02J\xff\xff\xff\xff.", func(v any) bool { return v == int64(-1) }},
		{"\x80\x02\x8a\x02\x00\x80.", func(v any) bool { return v == int64(-32768) }},
		{"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", func(v any) bool { x, ok := v.(*big.Int); return ok && x.BitLen() == 65 }},
		{"\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00.", func(v any) bool { return v == 1.5 }},
		{"\x80\x02]q\x00(K\x01K\x02eh\x00\x86.", func(v any) bool { x := v.(Tuple); return x[0] == x[1] && len(x[0].(*List).Items) == 2 }},
		{"\x80\x02}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00aK\x02u.", func(v any) bool { x, _ := v.(*Dict).Get("a"); return x == int64(2) }},
		{"\x80\x02cm\nC\n)\x81}(X\x01\x00\x00\x00aNub.", func(v any) bool { x := v.(*Object); return x.Class == Global{"m", "C"} && x.Built }},
	} {
		v, n, err := r.Read([]byte(c.data))
		if err != nil || n != len(c.data) || !c.want(v) {
			t.Errorf("%q: %v, %d, %v", c.data, v, n, err)
		}
	}
}

func TestErrors(t *testing.T) {
	r := &Reader{MaxObjects: 1000}
	for data, want := range map[string]string{
		"":                           "byte 0: the pickle ends without STOP",
		"\x80\x02K":                  "byte 2: 1 bytes expected, 0 left",
		"\x80\x02e.":                 "no mark",
		"\x80\x02a.":                 "expected on the stack",
		"\x80\x02h\x05.":             "memo entry 5 is empty",
		"\x80\x02X\xff\xff\xff\xff.": "bytes expected",
		"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff.": "larger than the pickle",
		"\x80\x02io\nsystem\n":                          "opcode 0x69 is not supported",
		"\x80\x09.":                                     "protocol 9",
		"\x80\x02Q.":                                    "pop of an empty stack",
		strings.Repeat("N", 2000):                       "more than 1000 objects",
		"\x80\x02(.":                                    "pop of an empty stack",
	} {
		_, _, err := r.Read([]byte(data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", data, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x80\x02cm\nC\n)\x81}(X\x01\x00\x00\x00aNub."))
	f.Add([]byte("\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00K\x02K\x02\x86K\x02K\x01\x86\x89ccollections\nOrderedDict\n)RtR."))
	f.Add([]byte("\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94\x8c\x01b\x93."))
	f.Fuzz(func(t *testing.T, data []byte) {
		ts := &Tensors{Load: func(string) ([]byte, error) { return make([]byte, 64), nil }}
		r := &Reader{Persistent: ts.Persistent, Call: ts.Call, MaxObjects: 1 << 16}
		_, _, _ = r.Read(data)
	})
}
