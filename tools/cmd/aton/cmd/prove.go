package cmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/judge/prove"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/verify"
)

// proof is what verify --prove tells of the passes.
type proof struct {
	// Before counts the passes that ran on graphs with operators of PyTorch, whose meaning the prover does not know.
	Before int `json:"passesBefore"`
	// Equations counts the equations between values before and after a change, and Proved those that are proved; By says what they
	// follow from.
	Equations int            `json:"equations"`
	Proved    int            `json:"proved"`
	By        map[string]int `json:"by"`
	// Values counts the values of the converted graph, and Certain those of which all equations are proved.
	Values  int      `json:"values"`
	Certain int      `json:"certain"`
	Open    []unsure `json:"open,omitempty"`
}

// unsure is a change that is not proved.
type unsure struct {
	Pass string   `json:"pass"`
	Rule string   `json:"rule,omitempty"`
	N    int      `json:"equations"`
	Why  []string `json:"why,omitempty"`
}

// validate converts the model again and proves what the passes do, at the sizes of a data set.
func (v *verifier) validate(mod *ssa.Module, set verify.DataSet) (*proof, error) {
	if v.name == "-" {
		return nil, cli.Misusef("--prove converts the model again: give a file in place of standard input")
	}
	args, err := verify.Arguments(mod, set)
	if err != nil {
		return nil, err
	}
	p := prove.New()
	defer p.Close()
	if p.Solver.Limit = v.limit; !p.Solver.Installed() {
		return nil, cli.Misusef("--prove needs a solver: %v", prove.ErrNoSolver)
	}
	w := prove.NewValidation(p)
	w.Dims = map[string]int64{}
	for i, in := range mod.Main().Body.Params {
		if t := in.Tensor(); t != nil && args[i].Tensor != nil && len(t.Dims) == len(args[i].Tensor.Shape) {
			for k, d := range t.Dims {
				if name, ok := d.Name(); ok {
					w.Dims[name] = args[i].Tensor.Shape[k]
				}
			}
		}
	}
	fresh, err := v.model.read(nil)
	if err != nil {
		return nil, err
	}
	_, err = aton.Convert(fresh, v.opts.ConvertOptions.WithObserver(w.Watch(fresh)))
	if err = errors.Join(err, w.Err()); err != nil {
		return nil, err
	}
	return tellProof(w), nil
}

func tellProof(w *prove.Validation) *proof {
	out := &proof{Before: w.Before, By: map[string]int{}, Values: w.Values, Certain: w.Sure}
	open := map[[2]string]int{}
	whys := map[[2]string]map[string]bool{}
	for _, c := range w.Changes {
		for r, n := range c.By {
			out.Equations += n
			if n > 0 {
				out.By[prove.Reason(r).String()] += n
			}
			if prove.Reason(r) < prove.AgreesOnInputs {
				out.Proved += n
				continue
			}
			key := [2]string{c.Pass, c.Rule}
			if open[key] += n; n > 0 {
				if whys[key] == nil {
					whys[key] = map[string]bool{}
				}
				for why := range c.Whys {
					whys[key][why] = true
				}
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(open), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }) {
		if open[key] > 0 {
			out.Open = append(out.Open, unsure{key[0], key[1], open[key], slices.Sorted(maps.Keys(whys[key]))})
		}
	}
	return out
}

func (f *proof) print(p *printer) {
	var by []string
	for r := prove.Congruent; r.String() != prove.Unproved.String(); r++ {
		if n := f.By[r.String()]; n > 0 && r < prove.AgreesOnInputs {
			by = append(by, fmt.Sprintf("%d %s", n, r))
		}
	}
	p.printf("proof: %d of %d equations of the passes are proved (%s); %d of %d values of the graph follow from proved ones alone\n", f.Proved, f.Equations, strings.Join(by, ", "), f.Certain, f.Values)
	if f.Before > 0 {
		p.printf("proof: %d passes ran on graphs with operators of PyTorch, which are compared by numbers alone\n", f.Before)
	}
	for _, u := range f.Open {
		name := u.Pass
		if u.Rule != "" {
			name += ", rule " + u.Rule
		}
		p.printf("proof: %s: %d left to the numbers", name, u.N)
		if len(u.Why) > 0 {
			p.printf(": %s", u.Why[0])
		}
		p.printf("\n")
	}
}
