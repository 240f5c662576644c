package verify

import (
	"archive/zip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/ssa/tensor"
)

// WriteOutputs writes the outputs of data sets to an .npz or safetensors file that ReadOutputs and ReadData can read. The outputs of a
// single data set have their own names; those of several are called SET/out/NUMBER/NAME. The same outputs give the same bytes.
func WriteOutputs(path string, sets []DataSet) error {
	var all []Named
	for _, set := range sets {
		for i, o := range set.Outputs {
			if len(sets) > 1 {
				o.Name = fmt.Sprintf("%s/out/%d/%s", set.Name, i, o.Name)
			}
			all = append(all, o)
		}
	}
	seen := map[string]bool{}
	for _, o := range all {
		if seen[o.Name] {
			return fmt.Errorf("%s: two outputs have the name %q", path, o.Name)
		}
		seen[o.Name] = true
	}
	if strings.HasSuffix(path, ".npz") {
		return atomicfile.Write(path, func(w io.Writer) error { return writeNPZ(w, all) })
	}
	return atomicfile.Write(path, func(w io.Writer) error { return writeSafetensors(w, all) })
}

// numpyTypes has the names of element types in NumPy files, little-endian.
var numpyTypes = map[tensor.DType]string{tensor.Float32: "<f4", tensor.Float64: "<f8", tensor.Float16: "<f2", tensor.Int8: "|i1", tensor.Int16: "<i2", tensor.Int32: "<i4",
	tensor.Int64: "<i8", tensor.Uint8: "|u1", tensor.Uint16: "<u2", tensor.Uint32: "<u4", tensor.Uint64: "<u8", tensor.Bool: "|b1", tensor.Complex64: "<c8", tensor.Complex128: "<c16"}

// writeNPZ writes arrays in the format of numpy.savez.
func writeNPZ(w io.Writer, all []Named) error {
	z := zip.NewWriter(w)
	for _, o := range all {
		descr, ok := numpyTypes[o.Tensor.DType]
		if !ok {
			return fmt.Errorf("output %s: NumPy has no elements of type %v: write safetensors", o.Name, o.Tensor.DType)
		}
		dims := make([]string, len(o.Tensor.Shape))
		for i, n := range o.Tensor.Shape {
			dims[i] = fmt.Sprint(n)
		}
		shape := strings.Join(dims, ", ")
		if len(dims) == 1 {
			shape += ","
		}
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
		head += strings.Repeat(" ", 63-(len(head)+10)%64) + "\n" // the data is aligned to 64 bytes
		f, err := z.CreateHeader(&zip.FileHeader{Name: o.Name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := f.Write(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))); err != nil {
			return err
		}
		if _, err := io.WriteString(f, head); err != nil {
			return err
		}
		if _, err := f.Write(o.Tensor.Bytes()); err != nil {
			return err
		}
	}
	return z.Close()
}

// safetensorsTypes has the names of element types in safetensors files.
var safetensorsTypes = map[tensor.DType]string{tensor.Float64: "F64", tensor.Float32: "F32", tensor.Float16: "F16", tensor.BFloat16: "BF16", tensor.Int64: "I64", tensor.Int32: "I32",
	tensor.Int16: "I16", tensor.Int8: "I8", tensor.Uint8: "U8", tensor.Bool: "BOOL", tensor.Uint16: "U16", tensor.Uint32: "U32", tensor.Uint64: "U64",
	tensor.Float8E4M3FN: "F8_E4M3", tensor.Float8E5M2: "F8_E5M2", tensor.Complex64: "C64"}

// writeSafetensors writes a JSON header, followed by the elements.
func writeSafetensors(w io.Writer, all []Named) error {
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header := map[string]entry{}
	at := int64(0)
	for _, o := range all {
		d, ok := safetensorsTypes[o.Tensor.DType]
		if !ok {
			return fmt.Errorf("output %s: safetensors files have no elements of type %v", o.Name, o.Tensor.DType)
		}
		n := int64(len(o.Tensor.Bytes()))
		header[o.Name] = entry{d, append([]int64{}, o.Tensor.Shape...), [2]int64{at, at + n}}
		at += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	for _, o := range all {
		if _, err := w.Write(o.Tensor.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
