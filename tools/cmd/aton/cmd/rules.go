package cmd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/dialects/aten/rules"
	"github.com/aton-project/aton/tools/judge/prove"
	"github.com/aton-project/aton/tools/lib/cli"
)

func newRules() *cobra.Command {
	proved, limit := false, 3*time.Second
	c := &cobra.Command{
		Use:   "rules FILE...",
		Short: "Check files of rules, and prove that they keep results",
		Long: `rules reads files of rules and tells what is wrong with them. With --prove it tries each rule on operators of ONNX on small graphs that it
matches, with symbolic elements, and asks the solver z3 whether a result can differ. A rule that is wrong has a counterexample.`,
		Example: `  aton rules my.rules --prove`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			set, err := rules.Load(args...)
			if err != nil {
				return beside(err, "FILE")
			}
			if !proved {
				return nil
			}
			s := prove.NewSession(nil)
			defer s.Close()
			s.Solver.Limit = limit
			results, err := s.User(set)
			if errors.Is(err, prove.ErrNoSolver) {
				return cli.Misusef("--prove needs %v", err)
			}
			if err != nil {
				return err
			}
			wrong := false
			for i, rule := range set.Rules() {
				tell(c.OutOrStdout(), rule, results[i])
				wrong = wrong || results[i].Outcome() == prove.Refuted
			}
			if wrong {
				return cli.ErrQuiet
			}
			return nil
		},
	}
	c.Flags().BoolVar(&proved, "prove", false, "prove the rules with z3")
	c.Flags().DurationVar(&limit, "limit", limit, "time for one question to the solver")
	return c
}

// tell prints what is known of a rule.
func tell(w io.Writer, rule rules.Rule, r *prove.Result) {
	fmt.Fprintf(w, "%s: %s: %s", rule.Place, rule.Name, r.Status())
	if n := r.Claims[prove.Proved]; n > 0 && r.Outcome() == prove.Proved {
		fmt.Fprintf(w, ", for all elements of %d graphs", n)
	}
	fmt.Fprintln(w)
	for _, c := range r.Refuted[:min(1, len(r.Refuted))] {
		fmt.Fprintf(w, "  %s\n  %s", c.Verdict.Counterexample(), strings.ReplaceAll(c.Claim.Before.String(), "\n", "\n  "))
		fmt.Fprintln(w)
	}
	if r.Outcome() == prove.Proved && r.Needed != "" {
		fmt.Fprintf(w, "  the results differ in rounding, the sign of zero, NaN or infinities: %s\n", r.Needed)
	}
	for why, n := range r.Whys {
		fmt.Fprintf(w, "  %d not proved: %s\n", n, why)
	}
}
