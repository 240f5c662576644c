package aton

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/frontend/weights"
	"github.com/aton-project/aton/ssa"
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

// Tolerance bounds the difference of floats from their expected values: |got - want| <= Absolute + Relative |want| + OfMax max|want|,
// where the maximum is over the finite elements of the output. NaN equals NaN.
type Tolerance struct {
	Relative, Absolute, OfMax float64
	// Share is the fraction of an output's elements that may differ by more, from 0 to 1.
	Share float64
	// AnyDType allows outputs of another element type, and AnyShape outputs of another shape with the same number of
	// elements, which are compared in order.
	AnyDType, AnyShape bool
}

// DefaultTolerance suits float32 and allows for sums in another order.
var DefaultTolerance = Tolerance{Relative: 1e-3, Absolute: 1e-5}

// Compared is the result of comparing an output with its expected value.
type Compared struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Elements is the number of elements, and Worst the greatest difference.
	Elements int64   `json:"elements"`
	Worst    float64 `json:"worst"`
	// Wrong describes a difference beyond the tolerance; it is empty if there is none.
	Wrong string `json:"wrong,omitempty"`
	// Difference measures the difference and says where it is greatest.
	Difference *bound.Difference `json:"difference,omitempty"`
}

// Verifier runs modules and compares their outputs with expected ones.
type Verifier struct {
	// Tolerance bounds the difference of floats; the zero value allows none. [DefaultTolerance] suits most models.
	Tolerance Tolerance
	// Kernels compute operators of custom domains in the reference interpreter.
	Kernels map[ssa.Kind]interp.Kernel
	// Observe, if not nil, is called for each operator that Run and Verify run, including those in blocks of control flow, with its
	// operands and results. An error ends the run.
	Observe func(o *ssa.Op, in, out []interp.Value) error
}

// FunctionKernels makes kernels from function bodies that consist of ONNX operators.
func FunctionKernels(f *onnxfile.Functions) map[ssa.Kind]interp.Kernel {
	kernels := map[ssa.Kind]interp.Kernel{}
	for _, k := range f.Kinds() {
		kernels[k] = func(o *ssa.Op, operands []interp.Value) ([]interp.Value, error) {
			types := make([]ssa.Type, len(operands))
			var args []interp.Value
			for i, v := range operands {
				switch {
				case v.Tensor != nil:
					types[i] = ssa.TensorOf(v.Tensor)
				case v.IsList && len(v.List) > 0:
					types[i] = &ssa.ListType{Elem: ssa.Unranked(v.List[0].DType)}
				case v.IsList:
					types[i] = o.Operand(i).Type
				default:
					continue
				}
				args = append(args, v)
			}
			m, err := f.Expand(o, types)
			if err != nil {
				return nil, err
			}
			return (&interp.Interpreter{Kernels: kernels}).RunFunc(m.Main(), args)
		}
	}
	return kernels
}

func (v Verifier) interpreter() *interp.Interpreter { return &interp.Interpreter{Kernels: v.Kernels} }

// Run runs a module of ONNX operators in the reference interpreter on the inputs of a data set, as Verify does, and returns its
// outputs.
func (v Verifier) Run(m *ssa.Module, data DataSet) ([]Named, error) {
	args, err := arguments(m, data)
	if err != nil {
		return nil, err
	}
	in := v.interpreter()
	in.Observe = v.Observe
	values, err := in.RunFunc(m.Main(), args)
	if err != nil {
		return nil, err
	}
	var out []Named
	for i, t := range leaves(values) {
		out = append(out, Named{outputName(m, i), t})
	}
	return out, nil
}

// Verify runs a module of ONNX operators (converted by Lower, or read from an ONNX file) in the reference interpreter and
// compares its outputs with those of the data set. Inputs are matched by name if the data set has all of the model's names,
// else by position.
func (v Verifier) Verify(m *ssa.Module, data DataSet) ([]Compared, error) {
	got, err := v.Run(m, data)
	if err != nil {
		return nil, err
	}
	if len(got) != len(data.Outputs) {
		return nil, fmt.Errorf("the model gives %d outputs, data set %s has %d", len(got), data.Name, len(data.Outputs))
	}
	var out []Compared
	for i, want := range data.Outputs {
		out = append(out, v.Tolerance.Compare(want.Name, got[i].Tensor, want.Tensor))
	}
	return out, nil
}

// alike removes the differences in type and shape that the tolerance allows.
func (tol Tolerance) alike(got, want *tensor.Tensor) (g, w *tensor.Tensor) {
	if tol.AnyShape && got.NumElements() == want.NumElements() && fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		got = got.Clone().Reshape(want.Shape)
	}
	numbers := func(t *tensor.Tensor) bool { return t.DType.HoldsNumbers() && !t.DType.IsComplex() && t.HasData() }
	if tol.AnyDType && got.DType != want.DType && numbers(got) && numbers(want) {
		as := func(t *tensor.Tensor) *tensor.Tensor {
			return tensor.FromFloats(tensor.Float64, t.Shape, t.Float64s())
		}
		return as(got), as(want)
	}
	return got, want
}

// Compare compares an output with its expected value.
func (tol Tolerance) Compare(name string, got, want *tensor.Tensor) Compared {
	c := Compared{Name: name, Type: want.String(), Elements: want.NumElements()}
	got, want = tol.alike(got, want)
	sameType := got.DType == want.DType || want.DType == tensor.Float64 && len(want.Shape) == 0 && got.DType == tensor.Float32 // a Python float
	if !sameType || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		c.Wrong = fmt.Sprintf("is %v, expected %v", got, want)
		return c
	}
	if !want.DType.HoldsNumbers() || want.DType.IsComplex() {
		c.Wrong = fmt.Sprintf("elements of type %v are not compared", want.DType)
		return c
	}
	if want.DType.IsFloat() && got.DType != want.DType { // a Python float: the file computes it in float32
		want = tensor.FromFloats(got.DType, want.Shape, want.Float64s())
	}
	var allowed func(i int) float64
	if want.DType.IsFloat() {
		w := want.Float64s()
		base := tol.Absolute
		if tol.OfMax > 0 {
			top := 0.0
			for _, x := range w {
				if x = math.Abs(x); x <= math.MaxFloat64 {
					top = max(top, x)
				}
			}
			base += tol.OfMax * top
		}
		allowed = func(i int) float64 { return base + tol.Relative*math.Abs(w[i]) }
	}
	d := bound.Measure(got, want, allowed)
	c.Difference, c.Worst = d, d.MaxAbs
	if d.NaN > 0 {
		c.Worst = math.MaxFloat64 // JSON has no infinities
	}
	if d.Shape != "" || float64(d.Beyond) > tol.Share*float64(d.Elements) {
		c.Wrong = fmt.Sprintf("%d of %d elements differ, the first one at %v is %v, expected %v", d.Beyond, d.Elements, d.First, d.Got, d.Want)
	}
	return c
}
