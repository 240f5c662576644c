package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/aton-project/aton/frontend"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// bundle is what belongs to a path: names in a folder. The path itself is the entry.
type bundle struct {
	dir   string
	entry string
	names []string
}

// filesOf lists the files that belong to a path: the file and, if it is an ONNX model, its external data; of a folder, all in it.
func filesOf(path string) (*bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	b := &bundle{dir: filepath.Dir(path), entry: filepath.Base(path)}
	if info.IsDir() {
		b.names, err = walk(os.DirFS(b.dir), filepath.ToSlash(b.entry))
		for i, name := range b.names {
			b.names[i] = filepath.FromSlash(name)
		}
		return b, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular(path)
	}
	b.names = []string{b.entry}
	locations, err := externalOf(path)
	if err != nil {
		return nil, err
	}
	for _, location := range locations {
		// what lies elsewhere, or is not there, is refused when the model is read
		name := filepath.FromSlash(location)
		if info, err := os.Stat(filepath.Join(b.dir, name)); filepath.IsLocal(name) && err == nil && info.Mode().IsRegular() && !slices.Contains(b.names, name) {
			b.names = append(b.names, name)
		}
	}
	slices.Sort(b.names[1:])
	return b, nil
}

// mostFolders is how deep folders lie in each other: links may make a circle.
const mostFolders = 32

// walk lists the files of a folder and of those in it, by rising names. It follows links, as who reads the folder does, and refuses what is
// no file: reading a pipe would wait.
func walk(fsys fs.FS, dir string) (names []string, err error) {
	if strings.Count(dir, "/") > mostFolders {
		return nil, fmt.Errorf("%s: folders in folders, more than %d", dir, mostFolders)
	}
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := fs.Stat(fsys, name)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			below, err := walk(fsys, name)
			if err != nil {
				return nil, err
			}
			names = append(names, below...)
		case info.Mode().IsRegular():
			names = append(names, name)
		default:
			return nil, irregular(name)
		}
	}
	return names, nil
}

func irregular(path string) error {
	return fmt.Errorf("%s is neither a file nor a folder", path)
}

// externalOf lists the locations of external data in a file; there are none if it is no ONNX model.
func externalOf(path string) (found []string, err error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if frontend.Recognize(m.Data[:min(len(m.Data), 64)]) != frontend.ONNX {
		return nil, nil
	}
	// a mapped file that becomes shorter is a fault of memory, which ends the process if it is not recovered
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r) // a defect of ours
			}
			err = fmt.Errorf("%s: the file was changed or cut while it was read", path)
		}
	}()
	return external(m.Data), nil
}

// hash is the hash of each file, and that of all together.
func (b *bundle) hash() ([]File, string, error) {
	var files []File
	for _, name := range b.names {
		f, err := hashFile(filepath.Join(b.dir, name))
		if err != nil {
			return nil, "", err
		}
		f.Name = filepath.ToSlash(name)
		files = append(files, f)
	}
	if len(files) == 1 {
		return files, files[0].Hash, nil
	}
	whole := make([]File, len(files))
	for i, f := range files {
		whole[i] = f
		if f.Name == b.entry {
			whole[i].Name = "" // a model is the same under another name
		}
	}
	return files, digest(whole), nil
}

// hashFile reads a file and gives its size and hash.
func hashFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return File{Name: filepath.Base(path), Size: n, Hash: hex.EncodeToString(h.Sum(nil))}, err
}

// hashOf is the hash of all files that belong to a path.
func hashOf(path string) (string, error) {
	b, err := filesOf(path)
	if err != nil {
		return "", err
	}
	_, hash, err := b.hash()
	return hash, err
}

// message is a kind of message of the ONNX format, by the fields that lead to tensors with external data.
type message map[protowire.Number]*message

// The kinds, with the numbers of onnx.proto.
var (
	entry        = &message{}                     // StringStringEntryProto
	tensor       = &message{13: entry}            // external_data
	sparseTensor = &message{1: tensor, 2: tensor} // values, indices
	graph        = &message{}
	attribute    = &message{5: tensor, 6: graph, 10: tensor, 11: graph, 22: sparseTensor, 23: sparseTensor}
	node         = &message{5: attribute}
	function     = &message{7: node}
	training     = &message{1: graph, 2: graph} // initialization, algorithm
	model        = &message{7: graph, 20: training, 25: function}
)

func init() {
	*graph = message{1: node, 5: tensor, 15: sparseTensor}
}

// deepest is how many messages may lie in each other; models that are read have less.
const deepest = 512

// external lists the locations of external data in an ONNX model, without making anything of the rest. Where the bytes are no message
// it stops: who reads the model says why.
func external(data []byte) []string {
	var found []string
	seen := map[string]bool{}
	var walk func(data []byte, kind *message, depth int)
	walk = func(data []byte, kind *message, depth int) {
		key, value := "", ""
		for len(data) > 0 {
			field, typ, n := protowire.ConsumeTag(data)
			if n < 0 {
				return
			}
			data = data[n:]
			if typ != protowire.BytesType {
				if n = protowire.ConsumeFieldValue(field, typ, data); n < 0 {
					return
				}
				data = data[n:]
				continue
			}
			inner, n := protowire.ConsumeBytes(data)
			if n < 0 {
				return
			}
			data = data[n:]
			switch sub := (*kind)[field]; {
			case kind == entry && field == 1:
				key = string(inner)
			case kind == entry && field == 2 && len(inner) < 1<<12:
				value = string(inner)
			case sub != nil && depth < deepest:
				walk(inner, sub, depth+1)
			}
		}
		if kind == entry && key == "location" && !seen[value] {
			seen[value] = true
			found = append(found, value)
		}
	}
	walk(data, model, 0)
	return found
}
