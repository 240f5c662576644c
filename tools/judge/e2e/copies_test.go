package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aton-project/aton"
)

// Check and Inspect work on copies: the module converts afterwards, as itself and as a copy, to the bytes that it converts to at once.
func TestCopies(t *testing.T) {
	n, ran := 0, 0
	for _, name := range []string{"cases", "lists", "quantized"} {
		for _, dir := range unpack(t, "testdata/"+name+".tar.gz") {
			if n++; n%12 != 0 {
				continue
			}
			var c struct {
				InputSpecs []string `json:"input_specs"`
				Opset      int
			}
			if b, err := os.ReadFile(filepath.Join(dir, "case.json")); err == nil {
				if err := json.Unmarshal(b, &c); err != nil {
					t.Fatal(err)
				}
			}
			o := withInputs(t, converting(aton.ConvertOptions{Opset: c.Opset}), c.InputSpecs...)
			path := filepath.Join(dir, "model.pt")
			var want bytes.Buffer
			if m, err := aton.Load(path, o.load); err != nil {
				continue
			} else if err := aton.ExportTo(&want, m, o.export); err != nil {
				continue
			}
			m, err := aton.Load(path, o.load)
			if err != nil {
				t.Fatal(err)
			}
			if list, err := aton.Check(m, o.export.ConvertOptions); err != nil || list.Err() != nil {
				t.Errorf("%s: Check: %v, %v", path, err, list.Err())
			}
			if _, list, err := aton.Inspect(m, "lower", o.export.ConvertOptions); err != nil {
				t.Errorf("%s: Inspect: %v, %v", path, err, list.Err())
			}
			if got := written(t, m.Clone(), o); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s: a copy converts to other bytes", path)
			}
			if got := written(t, m, o); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s: after Check and Inspect the module converts to other bytes", path)
			}
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("%d models were tried", ran)
	}
}
