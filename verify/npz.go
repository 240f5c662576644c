package verify

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// readNPZ reads the arrays of a numpy.savez file. Their names are SET/in/NUMBER/NAME and SET/out/NUMBER/NAME, as in
// safetensors files, or input_NUMBER and output_NUMBER.
func readNPZ(path string, parse func(name string, at int) (entry, error)) ([]DataSet, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer z.Close()
	var entries []entry
	for i, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		e, err := parse(name, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		e.Tensor, err = readNPY(r, mostOf(f))
		r.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		entries = append(entries, e)
	}
	return gatherSets(entries), nil
}

// Arrays that are deflated may be npzBytes, and for each byte that they have in the file npzRatio more: a small file is no gigabytes.
const (
	npzBytes = 256 << 20
	npzRatio = 64
)

// mostOf is how many bytes an array may have, by what the file says of it.
func mostOf(f *zip.File) int64 {
	packed := min(f.CompressedSize64, 1<<50)
	return int64(min(f.UncompressedSize64, npzBytes+npzRatio*packed))
}

var (
	npyDescr = regexp.MustCompile(`'descr':\s*'([^']*)'`)
	npyOrder = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape = regexp.MustCompile(`'shape':\s*\(([^)]*)\)`)
)

// readNPY reads an array in the format of numpy.save, of at most limit bytes.
func readNPY(r io.Reader, limit int64) (*tensor.Tensor, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("it is no array of NumPy")
	}
	var n int64
	if head[6] == 1 {
		var b [2]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		n = int64(binary.LittleEndian.Uint16(b[:]))
	} else {
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		n = int64(binary.LittleEndian.Uint32(b[:]))
	}
	if n > limit || n > 1<<16 {
		return nil, fmt.Errorf("its header is longer than the file")
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	descr, order, dims := npyDescr.FindSubmatch(text), npyOrder.FindSubmatch(text), npyShape.FindSubmatch(text)
	if descr == nil || order == nil || dims == nil {
		return nil, fmt.Errorf("its header is %q", text)
	}
	types := map[string]tensor.DType{"f4": tensor.Float32, "f8": tensor.Float64, "f2": tensor.Float16, "i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32,
		"i8": tensor.Int64, "u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64, "b1": tensor.Bool, "c8": tensor.Complex64, "c16": tensor.Complex128}
	d, ok := types[strings.TrimLeft(string(descr[1]), "<|=")]
	if !ok {
		return nil, fmt.Errorf("elements of type %s are not supported: save them little-endian", descr[1])
	}
	shape := []int64{}
	count := int64(1)
	for _, s := range strings.Split(string(dims[1]), ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 || v > 0 && count > limit/v {
			return nil, fmt.Errorf("its shape is (%s)", dims[1])
		}
		shape = append(shape, v)
		count *= v
	}
	if count > limit/int64(d.Size()) {
		return nil, fmt.Errorf("its shape is (%s)", dims[1])
	}
	// the length that the file states is not trusted: memory is allocated only for data that is there, and is the process's own only if they are few
	size := count * int64(d.Size())
	var data []byte
	var err error
	if size > npzBytes {
		data, err = mapfile.Spool(r, size)
	} else {
		var b bytes.Buffer
		_, err = io.CopyN(&b, r, size)
		data = b.Bytes()
	}
	if err != nil {
		return nil, fmt.Errorf("it ends before its %d bytes: %w", size, err)
	}
	if string(order[1]) == "False" || len(shape) < 2 {
		return tensor.New(d, shape, data), nil
	}
	// column-major: reverse the strides
	t := tensor.New(d, shape, data)
	stride := int64(1)
	for i := range shape {
		t.Strides[i] = stride
		stride *= shape[i]
	}
	return t.Clone(), nil
}

// entry is a tensor of a data set, with what its name in the file says.
type entry struct {
	set, kind string // kind is in or out
	number    int
	Named
}

// parseEntry reads a name: SET/in/NUMBER/NAME, SET/out/NUMBER/NAME, input_NUMBER or output_NUMBER.
func parseEntry(name string, _ int) (entry, error) {
	if parts := strings.SplitN(name, "/", 4); len(parts) == 4 && (parts[1] == "in" || parts[1] == "out") {
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			return entry{}, fmt.Errorf("%q: %w", name, err)
		}
		return entry{set: parts[0], kind: parts[1], number: n, Named: Named{Name: parts[3]}}, nil
	}
	for prefix, kind := range map[string]string{"input_": "in", "output_": "out"} {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, prefix)); err == nil && strings.HasPrefix(name, prefix) {
			return entry{set: "0", kind: kind, number: n, Named: Named{Name: name}}, nil
		}
	}
	return entry{}, fmt.Errorf("%q is not SET/in/NUMBER/NAME or SET/out/NUMBER/NAME", name)
}

// anyName is like parseEntry but takes any other name as that of an output, in the order of the file.
func anyName(name string, at int) (entry, error) {
	e, err := parseEntry(name, at)
	if err != nil {
		return entry{set: "0", kind: "out", number: at, Named: Named{Name: name}}, nil
	}
	return e, nil
}

// asPairs turns complex numbers into pairs of real ones along a new last axis, as models have them.
func asPairs(t *tensor.Tensor) *tensor.Tensor {
	of := map[tensor.DType]tensor.DType{tensor.Complex64: tensor.Float32, tensor.Complex128: tensor.Float64}
	d, complex := of[t.DType]
	if !complex {
		return t
	}
	return tensor.New(d, append(slices.Clone(t.Shape), 2), t.Bytes())
}

// gatherSets groups the tensors of a file into data sets.
func gatherSets(entries []entry) []DataSet {
	sort.SliceStable(entries, func(i, j int) bool {
		a, b := &entries[i], &entries[j]
		if a.set != b.set {
			return a.set < b.set
		}
		return a.number < b.number
	})
	var sets []DataSet
	for _, e := range entries {
		e.Tensor = asPairs(e.Tensor)
		if len(sets) == 0 || sets[len(sets)-1].Name != e.set {
			sets = append(sets, DataSet{Name: e.set})
		}
		s := &sets[len(sets)-1]
		if e.kind == "in" {
			s.Inputs = append(s.Inputs, e.Named)
		} else {
			s.Outputs = append(s.Outputs, e.Named)
		}
	}
	return sets
}
