package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/frontend/weights"
	"github.com/aton-project/aton/ssa/tensor"
)

// Named is a tensor with a name.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// DataSet has inputs for a model and the expected outputs, in order. A container is represented by its leaves, depth
// first.
type DataSet struct {
	Name            string
	Inputs, Outputs []Named
}

// ReadData reads data sets. The path is a safetensors file or an .npz with the names SET/in/NUMBER/NAME and
// SET/out/NUMBER/NAME (an .npz may use input_NUMBER and output_NUMBER instead), a folder with input_0.pb, output_0.pb, ... as in ONNX's
// test cases, or a folder that contains such folders. Complex tensors become pairs of real numbers along a new last axis, as in models.
func ReadData(path string) ([]DataSet, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var sets []DataSet
	if info.IsDir() {
		sets, err = readFolders(path)
	} else if strings.HasSuffix(path, ".npz") {
		sets, err = readNPZ(path, parseEntry)
	} else {
		sets, err = readNamed(path, parseEntry)
	}
	if err == nil && len(sets) == 0 {
		err = fmt.Errorf("%s: there are no data sets in it", path)
	}
	return sets, err
}

func readFolders(path string) ([]DataSet, error) {
	folders := []string{path}
	if _, err := os.Stat(filepath.Join(path, "output_0.pb")); err != nil {
		var err error
		if folders, err = filepath.Glob(filepath.Join(path, "test_data_set_*")); err != nil {
			return nil, err
		}
	}
	var sets []DataSet
	for _, folder := range folders {
		set := DataSet{Name: filepath.Base(folder)}
		for kind, to := range map[string]*[]Named{"input": &set.Inputs, "output": &set.Outputs} {
			for i := 0; ; i++ {
				file := filepath.Join(folder, fmt.Sprintf("%s_%d.pb", kind, i))
				if _, err := os.Stat(file); err != nil {
					break
				}
				name, t, err := onnxfile.ReadTensor(file)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
				*to = append(*to, Named{name, asPairs(t)})
			}
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// ReadOutputs reads expected outputs, in order: output_N of a folder or file, the outputs of a file with one data set, or all
// tensors of a file that uses other names.
func ReadOutputs(path string) ([]Named, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var sets []DataSet
	switch {
	case info.IsDir():
		sets, err = readFolders(path)
	case strings.HasSuffix(path, ".npz"):
		sets, err = readNPZ(path, anyName)
	default:
		sets, err = readNamed(path, anyName)
	}
	if err != nil {
		return nil, err
	}
	if len(sets) != 1 || len(sets[0].Outputs) == 0 {
		return nil, fmt.Errorf("%s: expected outputs are those of one run; there are %d data sets in it", path, len(sets))
	}
	return sets[0].Outputs, nil
}

func readNamed(path string, parse func(name string, at int) (entry, error)) ([]DataSet, error) {
	all, err := weights.Load(path, "")
	if err != nil {
		return nil, err
	}
	var entries []entry
	for i, name := range all.Names {
		e, err := parse(name, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		e.Tensor, _ = all.Get(name)
		entries = append(entries, e)
	}
	return gatherSets(entries), nil
}
