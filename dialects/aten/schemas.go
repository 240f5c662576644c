// Package aten is the dialect of PyTorch's operators: their declarations, effects,
// and their lowering to ONNX.
package aten

import (
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

//go:generate go run ../../tools/gen/opgen/compress schemas.txt

// schemasGzip is schemas.txt, compressed: a program that uses this package is smaller by the difference.
//
//go:embed schemas.txt.gz
var schemasGzip string

var table = sync.OnceValue(func() *ssa.SchemaTable { return ssa.NewSchemaTable(schemasText()) })

// schemasText returns the text of schemas.txt.
func schemasText() string {
	var b strings.Builder
	r, err := gzip.NewReader(strings.NewReader(schemasGzip))
	if err == nil {
		size := []byte(schemasGzip[len(schemasGzip)-4:]) // the format ends with the size of what it holds
		b.Grow(int(binary.LittleEndian.Uint32(size)))
		_, err = io.Copy(&b, r)
	}
	if err != nil {
		panic(err) // a bug in schemas.txt.gz, which TestCompressed compares with schemas.txt
	}
	return b.String()
}

// Schemas gives the declarations of an operator (aten, quantized, torchvision,
// prim) in the order in which overload resolution tries them: those of the
// newest PyTorch first, then those that only old releases had. It is nil for an
// unknown operator, and safe for concurrent use.
func Schemas(k ssa.Kind) []*ssa.Schema {
	if k.Namespace() == "prim" {
		return prim.Schemas(k)
	}
	return table().Lookup(k)
}

// Schema gives one overload, nil if there is none.
func Schema(k ssa.Kind, overload string) *ssa.Schema {
	for _, s := range Schemas(k) {
		if s.Overload == overload {
			return s
		}
	}
	return nil
}

// Kinds lists the operators that have declarations, prim's excluded, in alphabetical order.
func Kinds() []ssa.Kind { return table().Kinds() }

// CheckOperands reports the operators of PyTorch in a text that lack an operand: only those of ONNX leave operands out. The error
// is a *diag.List.
func CheckOperands(m *ssa.Module) error {
	list := &diag.List{Table: &m.Locs}
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if ns := o.Kind.Namespace(); (ns == "aten" || ns == "prim" || ns == "prims") && slices.Contains(o.Operands(), nil) {
				list.Add(diag.Diagnostic{ID: "invalid-args", Op: string(o.Kind), Loc: o.Loc, Message: "an operand is absent, and only operators of ONNX leave operands out",
					Hint: "write a value, such as the constant None"})
			}
		}
	}
	return list.Err()
}

// BindSchemas gives the operators of a module that have none yet the overload
// that their operands match: graph text does not name overloads. It returns the
// operators that are declared but match no overload.
func BindSchemas(m *ssa.Module) (unmatched []*ssa.Op) { return (*Table)(nil).BindSchemas(m) }

// BindSchemas is the function of that name for the operators of the table.
func (t *Table) BindSchemas(m *ssa.Module) (unmatched []*ssa.Op) {
	for _, f := range m.Funcs {
		t.bindPython(f)
		for o := range f.Body.AllOps() {
			all := t.Schemas(o.Kind)
			if o.Schema != nil { // a text may say it: one declaration is one object
				if i := slices.IndexFunc(all, func(s *ssa.Schema) bool { return s.String() == o.Schema.String() }); i >= 0 {
					o.Schema = all[i]
				}
				continue
			}
			if len(all) == 0 {
				continue
			}
			if slices.Contains(o.Operands(), nil) { // no declaration has an operand that is left out
				unmatched = append(unmatched, o)
				continue
			}
			types := make([]ssa.Type, o.NumOperands())
			for i := range types {
				types[i] = o.Operand(i).Type
			}
			if o.Schema = ssa.MatchSchema(all, types); o.Schema == nil {
				unmatched = append(unmatched, o)
			}
		}
	}
	return unmatched
}
