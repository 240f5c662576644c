package cmd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/lib/cli"
)

// maxElements bounds the memories that --arg makes.
const maxElements = 1 << 24

// kernelText is the content of a file of kernels in their text form, nil for any other file: its first word, behind comments, is kernel.
func (m *model) kernelText(stdin io.Reader) ([]byte, error) {
	text := m.bytes
	switch info, err := os.Stat(m.name); {
	case m.name == "-" && text == nil:
		if text, err = cli.ReadStream(stdin); err != nil {
			return nil, err
		}
		m.bytes = text
	case m.name != "-" && (err != nil || !info.Mode().IsRegular() || info.Size() > maxElements):
		return nil, nil // reading the model tells what is wrong
	case m.name != "-":
		if text, err = os.ReadFile(m.name); err != nil {
			return nil, nil
		}
	}
	rest := text
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if !bytes.HasPrefix(rest, []byte("#")) {
			break
		}
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	if !bytes.HasPrefix(rest, []byte("kernel ")) {
		return nil, nil
	}
	return text, nil
}

// printKernels prints kernels in one of their forms. The text is the compiler's own: what comes from a model is quoted in it.
func printKernels(w io.Writer, kernels []*kir.Kernel, form string, toPTX func(*kir.Kernel) (string, error)) error {
	for _, k := range kernels {
		var text string
		switch form {
		case "kir":
			text = k.String()
		case "llir":
			text = llvm.Lower(k).String()
		case "ptx":
			var err error
			if text, err = toPTX(k); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
		}
		if _, err := io.WriteString(w, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// kernelRun is what a kernel of text is run with.
type kernelRun struct {
	grid   string
	args   []string
	device string
}

func (r *kernelRun) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.grid, "run", "", "run a kernel that is given as text in a grid of `X[,Y[,Z]]` blocks, and print what it writes")
	f.StringArrayVar(&r.args, "arg", nil, "`NAME=VALUES`: with --run, the elements of a memory (1,2.5,0*60,0..63) or the value of a symbol; may be given several times")
	f.StringVar(&r.device, "device", "sim", "with --run, what runs it: sim (the simulator) or cuda")
	cli.Complete(c, "device", "sim", "cuda")
}

// run runs a kernel, checked where the device is simulated, and prints the memories that it writes.
func (r *kernelRun) run(w io.Writer, k *kir.Kernel, budget int) (err error) {
	var grid [3]int
	parts := strings.Split(r.grid, ",")
	for i := range grid {
		if grid[i] = 1; i >= len(parts) {
			continue
		}
		if grid[i], err = strconv.Atoi(parts[i]); err != nil || grid[i] < 1 || grid[i] > 1<<16 || len(parts) > 3 {
			return cli.Misusef("--run must be X[,Y[,Z]], numbers of blocks from 1 to %d, not %q", 1<<16, r.grid)
		}
	}
	if r.device != "sim" && r.device != "cuda" {
		return cli.Misusef("--device must be sim or cuda, not %q", r.device)
	}
	values := map[string]string{}
	var names []string // in the order of the flags
	for _, a := range r.args {
		name, v, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return cli.Misusef("--arg must be NAME=VALUES, not %q", a)
		}
		if _, twice := values[name]; twice {
			return cli.Misusef("--arg %s is given twice", name)
		}
		values[name] = v
		names = append(names, name)
	}
	used := map[string]bool{}
	backend, err := newBackend(r.device, true, budget)
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	memories := map[string]bool{}
	for _, p := range k.Params {
		if p.Mem != nil {
			memories[p.Mem.Name] = true
		}
	}
	for _, name := range names {
		v := values[name]
		if memories[name] {
			continue
		}
		if sizes[name], err = strconv.ParseInt(v, 10, 64); err != nil {
			return cli.Misusef("--arg %s=%s: %s is no memory of the kernel, and the value of a symbol is an integer", name, v, name)
		}
	}
	if err := checkSymbols(k, sizes); err != nil {
		return err
	}
	var args []exec.Arg
	var data [][]byte
	for i, p := range k.Params {
		if p.Mem == nil {
			n, ok := p.Size.Eval(sizes)
			if !ok || n != int64(int32(n)) {
				return cli.Misusef("parameter %d of %s, %s, has no value of 32 bits: give its symbols with --arg NAME=NUMBER", i, k.Name, p.Size)
			}
			p.Size.Symbols(func(name string) { used[name] = true })
			args, data = append(args, exec.Arg{Scalar: int32(n)}), append(data, nil)
			continue
		}
		text, given := values[p.Mem.Name]
		if !given {
			return cli.Misusef("no --arg for the memory %s of %s", p.Mem.Name, k.Name)
		}
		used[p.Mem.Name] = true
		b, err := elements(p.Mem.Elem, text)
		if err != nil {
			return cli.Misusef("--arg %s: %v", p.Mem.Name, err)
		}
		mem, err := backend.Alloc(int64(len(b)))
		if err != nil {
			return err
		}
		if err := backend.Upload(mem, b); err != nil {
			return err
		}
		args, data = append(args, exec.Arg{Memory: mem}), append(data, b)
	}
	for _, name := range names {
		if !used[name] {
			return cli.Misusef("--arg %s: %s has no such memory, and no size that depends on such a symbol", name, k.Name)
		}
	}
	loaded, err := backend.Load(k)
	if err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	if _, err := backend.Launch(loaded, grid, args); err != nil {
		return err // which names the kernel
	}
	if err := backend.Sync(); err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	for i, p := range k.Params {
		if p.Mem == nil || !p.Mem.Writes {
			continue
		}
		if err := backend.Download(args[i].Memory, data[i]); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s = %s\n", p.Mem.Name, numbers(p.Mem.Elem, data[i])); err != nil {
			return err
		}
	}
	return nil
}

// checkSymbols reports values of symbols that are not what the kernel says of these.
func checkSymbols(k *kir.Kernel, sizes map[string]int64) (err error) {
	for _, p := range k.Params {
		p.Size.Facts(func(f sym.Fact) {
			n, given := sizes[f.Name]
			if !given || err != nil {
				return
			}
			if n < f.Min {
				err = cli.Misusef("--arg %s=%d: %s is at least %d", f.Name, n, f.Name, f.Min)
			} else if f.Max != nil {
				if most, known := f.Max.Eval(sizes); known && n > most {
					err = cli.Misusef("--arg %s=%d: %s is at most %s", f.Name, n, f.Name, *f.Max)
				}
			}
		})
	}
	return err
}

// elements are the bytes of numbers: a list of numbers, of A..B for a range, and of V*N for one that stands N times.
func elements(t kir.Type, list string) ([]byte, error) {
	var out []byte
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		times := 1
		var values []string
		if v, n, ok := strings.Cut(s, "*"); ok {
			var err error
			if times, err = strconv.Atoi(n); err != nil || times < 0 || times > maxElements {
				return nil, fmt.Errorf("%q is no number of elements", n)
			}
			values = []string{v}
		} else if from, to, ok := strings.Cut(s, ".."); ok {
			i, err := strconv.Atoi(from)
			j, err2 := strconv.Atoi(to)
			if err != nil || err2 != nil || i > j || uint64(j)-uint64(i) >= maxElements {
				return nil, fmt.Errorf("%q is no range of integers", s)
			}
			for n := range j - i + 1 {
				values = append(values, strconv.Itoa(i+n))
			}
		} else {
			values = []string{s}
		}
		for _, v := range values {
			b, err := element(t, v)
			if err != nil {
				return nil, err
			}
			if out = append(out, bytes.Repeat(b, times)...); len(out) > maxElements*t.Size() {
				return nil, fmt.Errorf("more than %d elements", maxElements)
			}
		}
	}
	return out, nil
}

// element is the memory of a number.
func element(t kir.Type, s string) ([]byte, error) {
	var bits uint64
	if t.IsFloat() {
		size := 64
		if t == kir.F32 {
			size = 32
		}
		f, err := strconv.ParseFloat(s, size)
		if err != nil || t == kir.F16 && !math.IsInf(f, 0) && math.Abs(f) >= 65520 { // which rounds to infinity
			return nil, fmt.Errorf("%q is no number of %s", s, t)
		}
		switch t {
		case kir.F16:
			return tensor.FromFloats(tensor.Float16, []int64{1}, []float64{f}).Bytes(), nil
		case kir.F32:
			bits = uint64(math.Float32bits(float32(f)))
		default:
			bits = math.Float64bits(f)
		}
	} else {
		n, err := strconv.ParseInt(s, 10, 64)
		if size := 8 * t.Size(); err != nil || size < 64 && (n >= 1<<size || n < -1<<(size-1)) {
			return nil, fmt.Errorf("%q is no integer of %s", s, t)
		}
		bits = uint64(n)
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:t.Size()], nil
}

// numbers prints the elements of a memory.
func numbers(t kir.Type, b []byte) string {
	size := t.Size()
	out := make([]string, len(b)/size)
	for i := range out {
		var word [8]byte
		copy(word[:], b[i*size:][:size])
		bits := binary.LittleEndian.Uint64(word[:])
		switch t {
		case kir.F16:
			out[i] = strconv.FormatFloat(tensor.New(tensor.Float16, []int64{1}, b[i*size:][:size]).Float64s()[0], 'g', -1, 32)
		case kir.F32:
			out[i] = strconv.FormatFloat(float64(math.Float32frombits(uint32(bits))), 'g', -1, 32)
		case kir.F64:
			out[i] = strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
		default:
			shift := 64 - 8*size
			out[i] = strconv.FormatInt(int64(bits<<shift)>>shift, 10)
		}
	}
	return strings.Join(out, ", ")
}
