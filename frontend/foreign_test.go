package frontend

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func zipped(t *testing.T, records ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(records); i += 2 {
		f, err := w.Create(records[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(records[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is no model of ours is named, with what its owner can do.
func TestForeign(t *testing.T) {
	const manifest = `{"model": {"serializedFile": "net.pt"}}`
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"x.h5", []byte("\x89HDF\r\n\x1a\n...."), "HDF5 file, as Keras writes them; only models of PyTorch"},
		{"x.tflite", []byte("\x1c\x00\x00\x00TFL3...."), "TensorFlow Lite; only models of PyTorch"},
		{"x.gguf", []byte("GGUF...."), "weights and no program; load the module in Python"},
		{"x.pkl", []byte("\x80\x04\x95...."), "this is a pickle"},
		{"x.gz", []byte("\x1f\x8b\x08...."), "compressed by gzip; unpack it first"},
		{"x.mar", zipped(t, "MAR-INF/MANIFEST.json", manifest, "net.pt", ""), "TorchServe; unzip it and give the file of the model in it, net.pt"},
		{"y.mar", zipped(t, "net.pt", "", "MAR-INF/MANIFEST.json", manifest), "the model in it, net.pt"},
		{"z.mar", zipped(t, "MAR-INF/MANIFEST.json", "{"), "unzip it and give the file of the model in it"},
		{"x.keras", zipped(t, "config.json", "{}", "model.weights.h5", ""), "a model of Keras; only"},
		{"saved_model.pb", []byte("\x08\x01\x12\x9d"), "SavedModel of TensorFlow; only"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestFolder(t *testing.T) {
	for file, want := range map[string]string{
		"saved_model.pb": "SavedModel of TensorFlow", "data.pkl": "give the archive", "net.pt": "give a file, such as ", "notes.txt": "this is a folder; give a file",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
