package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError describes in words what is wrong with a flag.
func FlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return Misusef("unknown flag: %s%s", name, diag.DidYouMean(name, known))
	case errors.As(err, &value):
		name := "--" + value.GetFlag().Name
		var choice *choiceError
		if errors.As(err, &choice) {
			return Misusef("%s %w", name, choice)
		}
		what := map[string]string{
			"int": "a whole number", "float64": "a number", "bool": "true or false", "duration": "a time, such as 90s or 10m", "bytes": "a number of bytes, such as 4GB",
		}[value.GetFlag().Value.Type()]
		if what == "" {
			what = "a value of another form"
		}
		return Misusef("%s must be %s, not %q", name, what, value.GetValue())
	}
	return Misuse(err)
}

// Commands is the Args of a command that has only subcommands. An unknown name is an error that suggests the nearest one.
func Commands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), diag.DidYouMean(args[0], known))
}

// choice is the value of a flag that is one of several words.
type choice struct {
	to     *string
	values []string
}

// choiceError lists the values of a flag.
type choiceError struct{ message string }

func (e *choiceError) Error() string { return e.message }

func (v choice) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

func (v choice) Type() string { return "string" }

func (v choice) Set(s string) error {
	if i := slices.IndexFunc(v.values, func(value string) bool { return strings.EqualFold(value, s) }); i >= 0 {
		*v.to = v.values[i]
		return nil
	}
	last := len(v.values) - 1
	return &choiceError{fmt.Sprintf("must be %s or %s, not %q", strings.Join(v.values[:last], ", "), v.values[last], s)}
}

// Choice adds a flag with several possible values; the first one is the default. Case does not matter.
func Choice(c *cobra.Command, to *string, name string, values []string, usage string) {
	*to = values[0]
	c.Flags().Var(choice{to, values}, name, usage)
	Complete(c, name, values...)
}

// Complete has the shell offer values for a flag.
func Complete(c *cobra.Command, name string, values ...string) {
	CompleteWith(c, name, func(string) []string { return values })
}

// CompleteWith has the shell offer what values gives for what has been typed.
func CompleteWith(c *cobra.Command, name string, values func(typed string) []string) {
	err := c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return values(typed), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // a command of ours has no such flag, or has it twice
	}
}

// List is for values that are lists, with separators: names are offered for what stands behind the last separator.
func List(names []string, separators string) func(typed string) []string {
	return func(typed string) []string {
		done := typed[:strings.LastIndexAny(typed, separators)+1]
		out := make([]string, len(names))
		for i, n := range names {
			out[i] = done + n
		}
		return out
	}
}
