package frontend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/jit"
)

// How to get from what people have to what is read.
const (
	saveModule = "load the module in Python and save it with torch.jit.save(torch.jit.script(module), FILE) or " +
		"torch.export.save(torch.export.export(module, args), FILE)"
	otherFramework = "only models of PyTorch and ONNX files are read; tf2onnx converts those of TensorFlow and Keras"
)

// magic begins a file that is no model of ours.
var magic = []struct {
	at           int
	begin        string
	what, advice string
}{
	{0, "\x89HDF\r\n\x1a\n", "this is an HDF5 file, as Keras writes them", otherFramework},
	{4, "TFL3", "this is a model of TensorFlow Lite", otherFramework},
	{0, "GGUF", "this is a GGUF file: weights and no program", saveModule},
	{0, "\x80\x02", "this is a pickle: it names the classes of a program and does not have them", saveModule},
	{0, "\x80\x03", "this is a pickle: it names the classes of a program and does not have them", saveModule},
	{0, "\x80\x04", "this is a pickle: it names the classes of a program and does not have them", saveModule},
	{0, "\x80\x05", "this is a pickle: it names the classes of a program and does not have them", saveModule},
	{0, "\x1f\x8b", "the file is compressed by gzip", "unpack it first"},
}

// foreign says what a file is that is none of those that are read, and what its owner can do. It is empty where that is
// not known.
func foreign(data []byte) (what, advice string) {
	for _, m := range magic {
		if len(data) > m.at && bytes.HasPrefix(data[m.at:], []byte(m.begin)) {
			return m.what, m.advice
		}
	}
	if !archive.IsZip(data) {
		return "", ""
	}
	a, err := archive.Read(data, "", nil)
	if err != nil || a.Has("data.pkl") || jit.IsArchive(a) {
		return "", ""
	}
	const manifest = "MANIFEST.json"
	switch {
	case a.Prefix == "MAR-INF" || a.Has("MAR-INF/"+manifest):
		return "this is an archive of TorchServe", "unzip it and give the file of the model in it" + served(a, manifest)
	case a.Has("model.weights.h5"), a.Has("keras_metadata.pb"):
		return "this is a model of Keras", otherFramework
	}
	return "", ""
}

// served names the file of the model of an archive of TorchServe.
func served(a *archive.Archive, manifest string) string {
	if a.Prefix != "MAR-INF" {
		manifest = "MAR-INF/" + manifest
	}
	text, err := a.Bytes(manifest)
	if err != nil {
		return ""
	}
	var m struct {
		Model struct {
			SerializedFile string `json:"serializedFile"`
		} `json:"model"`
	}
	if json.Unmarshal(text, &m) != nil || m.Model.SerializedFile == "" {
		return ""
	}
	return ", " + m.Model.SerializedFile
}

// isSavedModel reports the protocol buffer of a SavedModel, which may begin as an ONNX model does.
func isSavedModel(path string, data []byte) bool {
	return filepath.Base(path) == "saved_model.pb" || bytes.Contains(data[:min(len(data), 1<<16)], []byte("saved_model_main_op"))
}

// folder says what to do with a folder; nil for what is none.
func folder(path string) error {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(path, name))
		return err == nil
	}
	switch {
	case has("saved_model.pb"):
		return fmt.Errorf("%s: this is a SavedModel of TensorFlow; %s", path, otherFramework)
	case has("data.pkl"):
		return fmt.Errorf("%s: this is the unpacked archive of a model; give the archive", path)
	case has("config.json") && (has("model.safetensors") || has("pytorch_model.bin") || has("model.safetensors.index.json")):
		return fmt.Errorf("%s: this folder has weights and no program; %s", path, saveModule)
	}
	for _, pattern := range []string{"*.pt2", "*.pt", "*.pth", "*.onnx"} {
		if found, err := filepath.Glob(filepath.Join(strings.ReplaceAll(path, "[", "\\["), pattern)); err == nil && len(found) > 0 {
			return fmt.Errorf("%s: this is a folder; give a file, such as %s, or convert all of its models with: aton batch %s -o OUT", path, found[0], path)
		}
	}
	return fmt.Errorf("%s: this is a folder; give a file, or convert all models below it with: aton batch %s -o OUT", path, path)
}
