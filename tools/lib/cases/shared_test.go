package cases

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/pack"
)

// Sixteen goroutines convert 500 models with one table of operators, each model by two of them from the same bytes: what they share
// is only read, and both write the same file. `make race` runs this with the race detector.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	folders, err := pack.Unpack(filepath.Join("..", "..", "..", "testdata", "cases.tar.gz"), dir)
	if err != nil {
		t.Fatal(err)
	}
	models := 500
	if testing.Short() {
		models = 50
	}
	if len(folders) < models {
		t.Fatalf("%d models", len(folders))
	}
	table := aten.NewTable()
	files := make([][2]bytes.Buffer, models)
	says := make([][2]string, models)
	next := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range next {
				k, which := i/2, i%2
				c, err := Read(folders[k*len(folders)/models])
				if err != nil {
					t.Error(err)
					continue
				}
				f := Archive
				if !c.Has(f) {
					f = Exported
				}
				opts, err := c.LoadOptions(f)
				if err != nil {
					t.Error(err)
					continue
				}
				opts.Table = table
				data, err := os.ReadFile(filepath.Join(c.Dir, string(f)))
				if err != nil {
					t.Error(err)
					continue
				}
				m, err := aton.LoadBytes(data, string(f), opts)
				if err == nil {
					err = aton.ExportTo(&files[k][which], m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Table: table}})
				}
				if err != nil {
					says[k][which] = err.Error()
				}
			}
		})
	}
	for i := range 2 * models {
		next <- i
	}
	close(next)
	wg.Wait()
	for k := range files {
		if says[k][0] != says[k][1] || !bytes.Equal(files[k][0].Bytes(), files[k][1].Bytes()) {
			t.Errorf("%s: two goroutines give %d bytes (%s) and %d bytes (%s)", folders[k*len(folders)/models], files[k][0].Len(), says[k][0], files[k][1].Len(), says[k][1])
		}
	}
}
