package weights

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/ssa/tensor"
)

const maxHeader = 100 << 20

var safeTypes = map[string]tensor.DType{"F64": tensor.Float64, "F32": tensor.Float32, "F16": tensor.Float16, "BF16": tensor.BFloat16,
	"I64": tensor.Int64, "I32": tensor.Int32, "I16": tensor.Int16, "I8": tensor.Int8, "U8": tensor.Uint8, "BOOL": tensor.Bool,
	"U16": tensor.Uint16, "U32": tensor.Uint32, "U64": tensor.Uint64, "F8_E4M3": tensor.Float8E4M3FN, "F8_E5M2": tensor.Float8E5M2, "C64": tensor.Complex64}

// readSafetensors reads a header in JSON, then the elements.
func readSafetensors(data []byte, name string) (*Set, error) {
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, &archive.Error{File: name, Offset: 0, Err: fmt.Errorf("a header of %d bytes", n), Hint: "this is not a safetensors file, or it was cut short"}
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+n], &header); err != nil {
		return nil, &archive.Error{File: name, Offset: 8, Err: fmt.Errorf("the header is not JSON: %w", err)}
	}
	body := data[8+n:]
	type entry struct {
		name    string
		DType   string    `json:"dtype"`
		Shape   []int64   `json:"shape"`
		Offsets [2]uint64 `json:"data_offsets"`
	}
	var entries []entry
	for k, raw := range header {
		if k == "__metadata__" {
			continue
		}
		e := entry{name: k}
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, &archive.Error{File: name, Record: k, Offset: -1, Err: fmt.Errorf("the header's entry: %w", err)}
		}
		entries = append(entries, e)
	}
	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		if a.Offsets[0] != b.Offsets[0] {
			return a.Offsets[0] < b.Offsets[0]
		}
		return a.name < b.name
	})
	s := &Set{}
	for _, e := range entries {
		d, ok := safeTypes[e.DType]
		if !ok {
			return nil, &archive.Error{File: name, Record: e.name, Offset: -1, Err: fmt.Errorf("element type %.20q is not supported", e.DType)}
		}
		if e.Offsets[0] > e.Offsets[1] || e.Offsets[1] > uint64(len(body)) || len(e.Shape) > 64 {
			return nil, &archive.Error{File: name, Record: e.name, Offset: -1, Err: errors.New("the data reaches beyond the end of the file")}
		}
		t := tensor.New(d, e.Shape, body[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]])
		for _, n := range e.Shape {
			if n < 0 {
				return nil, &archive.Error{File: name, Record: e.name, Offset: -1, Err: errors.New("a negative size")}
			}
		}
		if err := t.Check(); err != nil {
			return nil, &archive.Error{File: name, Record: e.name, Offset: -1, Err: err}
		}
		if t.NumBytes() != t.Storage.Len() {
			return nil, &archive.Error{File: name, Record: e.name, Offset: -1, Err: fmt.Errorf("%d bytes for %v elements", t.Storage.Len(), e.Shape)}
		}
		s.add(e.name, t)
	}
	return s, nil
}
