package aten

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
)

// TestCompressed: the compressed declarations, which programs contain, are those of schemas.txt.
func TestCompressed(t *testing.T) {
	text, err := os.ReadFile("schemas.txt")
	if err != nil {
		t.Fatal(err)
	}
	if schemasText() != string(text) {
		t.Error("schemas.txt.gz does not hold schemas.txt: run make gen")
	}
}

// TestSchemasParse parses every declaration and checks that no line is lost.
func TestSchemasParse(t *testing.T) {
	for _, text := range []string{schemasText()} {
		n := 0
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			n++
			s, err := ssa.ParseSchema(line)
			if err != nil {
				t.Error(err)
				continue
			}
			if s.String() != line {
				t.Errorf("%s keeps %s", line, s)
			}
		}
		have := 0
		for _, k := range Kinds() {
			have += len(Schemas(k))
		}
		if have != n {
			t.Errorf("%d lines, %d schemas", n, have)
		}
	}
	for _, k := range prim.Kinds() {
		if len(Schemas(k)) == 0 {
			t.Errorf("%s has no schema", k)
		}
	}
}

// TestSchemasSorted guards the form that tools/gen/opgen/aten_schemas.py writes.
func TestSchemasSorted(t *testing.T) {
	for _, name := range []string{"schemas.txt", filepath.Join("..", "prim", "schemas.txt")} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		last := ""
		for i, line := range strings.Split(string(data), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			op, _, _ := strings.Cut(line[:strings.IndexByte(line, '(')], ".")
			if op < last {
				t.Fatalf("%s:%d: %s stands after %s", name, i+1, op, last)
			}
			last = op
			if seen[line] {
				t.Errorf("%s:%d: a line twice", name, i+1)
			}
			seen[line] = true
		}
	}
}

func TestSchemaFields(t *testing.T) {
	s := Schema("aten::conv2d", "")
	if s == nil || len(s.Args) != 7 {
		t.Fatalf("conv2d: %v", s)
	}
	stride := s.Args[s.Arg("stride")]
	if stride.Size != 2 || !stride.Default.Equal(ssa.Ints(1, 1)) {
		t.Errorf("stride: size %d, default %v", stride.Size, stride.Default)
	}
	add := Schema("aten::add_", "Tensor")
	if !add.Args[0].Writes || add.Args[0].Alias != "a" || add.Returns[0].Alias != "a" || !add.Args[2].KwOnly || !add.Mutates() {
		t.Errorf("add_: %+v", add)
	}
	app := Schema("aten::append", "t")
	if app == nil || !app.Args[0].Writes || app.Args[1].AliasAfter != "*" {
		t.Errorf("append: %+v", app)
	}
}

func TestMatchSchema(t *testing.T) {
	list := &ssa.ListType{Elem: ssa.IntType}
	for _, c := range []struct {
		kind  ssa.Kind
		types []ssa.Type
		want  string
	}{
		{"aten::add", []ssa.Type{ssa.AnyTensor, ssa.IntType, ssa.IntType}, "Scalar"},
		{"aten::add", []ssa.Type{ssa.AnyTensor, ssa.AnyTensor, ssa.IntType}, "Tensor"},
		{"aten::max", []ssa.Type{ssa.AnyTensor, ssa.IntType, ssa.BoolType}, "dim"},
		{"aten::div", []ssa.Type{ssa.IntType, ssa.IntType}, "int"},
		{"aten::slice", []ssa.Type{list, ssa.IntType, ssa.NoneType, ssa.IntType}, "t"},
		{"aten::__getitem__", []ssa.Type{&ssa.DictType{Key: ssa.StrType, Value: ssa.AnyTensor}, ssa.StrType}, "Dict_str"},
		{"aten::to", []ssa.Type{ssa.AnyTensor, ssa.IntType, ssa.BoolType, ssa.BoolType, ssa.NoneType}, "dtype"},
	} {
		s := ssa.MatchSchema(Schemas(c.kind), c.types)
		if s == nil || s.Overload != c.want {
			t.Errorf("%s%v: %v, want .%s", c.kind, c.types, s, c.want)
		}
	}
}
