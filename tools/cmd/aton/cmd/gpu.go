package cmd

import (
	"fmt"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/cuda"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
)

// simulated is how many lane instructions a run in the simulator may take: some ten seconds on two cores.
const simulated = 1 << 34

// newBackend opens a device. The simulator takes budget times what it has for programs that anybody may have written.
func newBackend(name string, check bool, budget int) (exec.Backend, error) {
	most := (&ssa.Module{Budget: budget}).Allow(simulated)
	switch name {
	case "sim", "ptx": // ptx is the older name: the simulator ran LLVM IR besides
		return &exec.Sim{Check: check, Budget: most}, nil
	case "cuda":
		return cuda.Open()
	}
	return nil, cli.Misusef("--device must be interp, sim or cuda, not %q", name)
}

// kernelFacts is what gpu tells of a kernel.
type kernelFacts struct {
	Name     string `json:"name"`
	Class    string `json:"class"`
	Node     string `json:"node"` // the first one that it computes
	Threads  int    `json:"threads"`
	Shared   int    `json:"shared_bytes"`
	Launches int    `json:"launches"`
	// Bytes and Flops are those of all launches, where the sizes are known; -1 where not.
	Bytes int64 `json:"bytes"`
	Flops int64 `json:"flops"`
	// Registers and Spills are ptxas's, -1 where there is none.
	Registers int `json:"registers"`
	Spills    int `json:"spill_bytes"`
}

// tf32Usage is what --tf32 does, wherever kernels are made.
const tf32Usage = "let kernels round the factors of large products and convolutions of float32 to tf32 (11 bits instead of 24), for tensor cores"

func newGPU() *cobra.Command {
	var m model
	var print, fusion, route, target string
	var tf32 bool
	var runs kernelRun
	c := &cobra.Command{
		Use:   "gpu MODEL",
		Short: "Show the GPU kernels that run the converted model",
		Long: `gpu converts the model, as verify does, and shows the kernels that aton generates for it and the plan that launches
them. It does not run the model. --print selects what to print:

  facts     the kernels: launches, threads, shared memory, bytes, and with ptxas on PATH (or named by ATON_PTXAS) registers
            and spills; and which operators run where
  plan      the launch plan as JSON: sizes are expressions over the inputs' symbols
  kir       the kernels in aton's own kernel IR
  llir      the kernels as LLVM IR
  ptx       the kernels as PTX

MODEL may also be a file of kernels as --print kir prints them: they are printed in one of these forms, or one is run with --run, in the simulator
with all its checkers.`,
		Example: `  aton gpu model.pt --input 'x:f32[1,3,64,64]'
  aton gpu model.onnx --print plan
  aton gpu model.onnx --print ptx --fusion none
  aton gpu kernel.kir --print ptx
  aton gpu kernel.kir --run 1 --arg 'x=1,2,3' --arg 'y=0*3' --arg N=3`,
		Args: oneModel,
	}
	m.flags(c)
	m.jsonFlag(c)
	f := c.Flags()
	f.StringVar(&print, "print", "facts", "what to print: facts, plan, kir, llir, ptx")
	f.StringVar(&fusion, "fusion", "light", "which nodes share a kernel: none, light")
	f.BoolVar(&tf32, "tf32", false, tf32Usage)
	f.StringVar(&route, "route", "printer", "what generates PTX: printer (aton's own), or llc")
	cli.Complete(c, "print", "facts", "plan", "kir", "llir", "ptx")
	cli.Complete(c, "fusion", "none", "light")
	cli.Complete(c, "route", "printer", "llc")
	f.StringVar(&target, "arch", "sm_80", "the processor that PTX is for")
	runs.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if fusion != string(fuse.None) && fusion != string(fuse.Light) {
			return cli.Misusef("--fusion must be none or light, not %q", fusion)
		}
		toPTX, err := ptxRoute(route, target)
		if err != nil {
			return err
		}
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		if text, err := m.kernelText(c.InOrStdin()); err != nil {
			return err
		} else if text != nil {
			kernels, err := kir.ParseAll(cli.Inline(m.name), string(text))
			switch {
			case err != nil:
				return unreadable{err}
			case !c.Flags().Changed("run") && len(runs.args) > 0:
				return cli.Misusef("--arg stands with --run")
			case c.Flags().Changed("run") && (c.Flags().Changed("print") || c.Flags().Changed("route") || m.json):
				return cli.Misusef("--run stands without --print, --route and --json")
			case c.Flags().Changed("run") && len(kernels) != 1:
				return cli.Misusef("--run takes a file of one kernel, not of %d", len(kernels))
			case c.Flags().Changed("run"):
				return runs.run(c.OutOrStdout(), kernels[0], m.loading.Budget)
			case !c.Flags().Changed("print"):
				print = "kir"
			case print != "kir" && print != "llir" && print != "ptx":
				return cli.Misusef("--print must be kir, llir or ptx for kernels as text, not %q", print)
			}
			return printKernels(c.OutOrStdout(), kernels, print, toPTX)
		}
		if runs.grid != "" || len(runs.args) > 0 {
			return cli.Misusef("--run takes a kernel as text, as --print kir prints it")
		}
		mod, err := m.read(c.InOrStdin())
		if err != nil {
			return m.locate(err)
		}
		if mod.UsesNamespace("aten") || mod.UsesNamespace("prim") {
			if _, err := aton.Convert(mod, m.opts.ConvertOptions); err != nil {
				return m.locate(err)
			}
		}
		p, err := plan.NewWith(mod, plan.Options{Fusion: fuse.Mode(fusion), TF32: tf32})
		if err != nil {
			return fmt.Errorf("%s: %w", cli.Inline(m.name), err)
		}
		out := &printer{w: c.OutOrStdout()}
		switch print {
		case "plan":
			return p.WriteJSON(cli.JSON(c.OutOrStdout()))
		case "kir", "llir", "ptx":
			var kernels []*kir.Kernel
			for _, k := range p.Kernels {
				kernels = append(kernels, k.Kernel)
			}
			return printKernels(c.OutOrStdout(), kernels, print, toPTX)
		case "facts":
			facts, err := gather(p, toPTX, target)
			if err != nil {
				return err
			}
			if m.json {
				counts, share := p.Coverage()
				return printJSON(c.OutOrStdout(), map[string]any{"model": m.name, "fusion": fusion, "kernels": facts, "nodes": counts, "share": share})
			}
			printFacts(out, facts)
			if out.err == nil {
				out.err = p.WriteCoverage(c.OutOrStdout())
			}
		default:
			return cli.Misusef("--print must be facts, plan, kir, llir or ptx, not %q", print)
		}
		return out.err
	}
	return c
}

func ptxRoute(route, target string) (func(k *kir.Kernel) (string, error), error) {
	switch route {
	case "printer":
		return func(k *kir.Kernel) (string, error) {
			return ptx.Print(k, ptx.Options{Target: target})
		}, nil
	case "llc":
		llc, err := ptx.FindLLC()
		if err != nil {
			return nil, err
		}
		return func(k *kir.Kernel) (string, error) {
			return llc.Compile(llvm.Lower(k), ptx.Options{Target: target})
		}, nil
	}
	return nil, cli.Misusef("--route must be printer or llc, not %q", route)
}

// gather collects the facts of a plan's kernels.
func gather(p *plan.Plan, toPTX func(*kir.Kernel) (string, error), target string) ([]kernelFacts, error) {
	ptxas := os.Getenv("ATON_PTXAS")
	if ptxas == "" {
		ptxas, _ = osexec.LookPath("ptxas")
	}
	var out []kernelFacts
	at := map[string]int{}
	for _, k := range p.Kernels {
		f := kernelFacts{Name: k.Name, Class: k.Class, Threads: k.Threads, Shared: k.SharedBytes(), Registers: -1, Spills: -1}
		if ptxas != "" {
			text, err := toPTX(k.Kernel)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
			if f.Registers, f.Spills, err = assemble(ptxas, target, text); err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
		}
		at[k.Name] = len(out)
		out = append(out, f)
	}
	for s := range p.AllSteps() {
		if s.Launch == nil {
			continue
		}
		f := &out[at[s.Kernel.Name]]
		if f.Launches++; f.Node == "" {
			f.Node = plan.NodeName(s.Op)
		}
		for _, b := range s.Args {
			n, ok := index.Prod(b.Value.Tensor().Dims).Int()
			if !ok || f.Bytes < 0 {
				f.Bytes = -1
				break
			}
			f.Bytes += n * int64(b.Value.DType().Size())
		}
		if n, ok := s.Launch.Work.Int(); ok && f.Flops >= 0 {
			f.Flops += n
		} else if !ok {
			f.Flops = -1
		}
	}
	return out, nil
}

// assemble runs ptxas, and reads what it says of registers and spills.
func assemble(ptxas, target, text string) (registers, spills int, err error) {
	c := osexec.Command(ptxas, "-arch="+target, "-v", "-o", os.DevNull, "-")
	c.Stdin = strings.NewReader(text)
	said, err := c.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", ptxas, err, said)
	}
	number := func(re string) int {
		n := -1
		if s := regexp.MustCompile(re).FindSubmatch(said); s != nil {
			fmt.Sscan(string(s[1]), &n)
		}
		return n
	}
	return number(`Used (\d+) registers`), number(`(\d+) bytes spill stores`), nil
}

func printFacts(p *printer, facts []kernelFacts) {
	num := func(n int64) string {
		if n < 0 {
			return "?"
		}
		return fmt.Sprint(n)
	}
	p.printf("%-26s %-10s %8s %8s %8s %12s %12s %5s %6s  %s\n", "kernel", "class", "launches", "threads", "shared", "bytes", "flops", "regs", "spills", "node")
	for _, f := range facts {
		p.printf("%-26s %-10s %8d %8d %8d %12s %12s %5s %6s  %s\n", f.Name, f.Class, f.Launches, f.Threads, f.Shared, num(f.Bytes), num(f.Flops), num(int64(f.Registers)), num(int64(f.Spills)), f.Node)
	}
}
