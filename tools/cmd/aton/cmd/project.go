package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

// projectFile is the file beside a model that has options of a project, by the names of the flags:
//
//	opset = 17
//	input = ["x:f32[N,3,224,224]"]
//	deny = ["warnings"]
//	allow = ["state"]
const projectFile = "aton.toml"

// ofCall are the options that a project does not have: they say where a call writes to and how it tells what it finds.
var ofCall = []string{"output", "sarif", "repro", "minimize", "html", "svg", "dot", "json", "help", "quiet", "verbose", "port", "no-open"}

// project sets the flags that the model's project has and the command line has not. A flag of another command is nothing to this one. In a
// batch, which remembers what each model and its flags gave, the flags of the batch are all.
func project(c *cobra.Command, model string) error {
	if _, batch := c.Context().Value(listener{}).(func([]cli.Problem)); batch || model == "-" || model == "" {
		return nil
	}
	path := filepath.Join(filepath.Dir(model), projectFile)
	options := map[string]any{}
	if _, err := toml.DecodeFile(path, &options); err != nil {
		var syntax toml.ParseError
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrPermission): // the folder may be none
			return nil
		case errors.As(err, &syntax):
			return cli.Misusef("%s:%d:%d: %s", path, syntax.Position.Line, syntax.Position.Col, syntax.Message)
		}
		return cli.Misusef("%s: %w", path, err)
	}
	known := map[string]bool{}
	for _, sub := range New().Commands() {
		sub.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = !slices.Contains(ofCall, f.Name) })
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return !known[name] })
	for _, name := range slices.Sorted(maps.Keys(options)) {
		f := c.Flags().Lookup(name)
		switch {
		case !known[name] && slices.Contains(ofCall, name):
			return cli.Misusef("%s: %s belongs on the command line", path, name)
		case !known[name]:
			return cli.Misusef("%s: no option is called %s%s", path, name, diag.DidYouMean(name, names))
		case f == nil || f.Changed:
			continue
		}
		values, many := options[name].([]any)
		if !many {
			values = []any{options[name]}
		}
		if _, lists := f.Value.(pflag.SliceValue); many && !lists {
			return cli.Misusef("%s: %s has one value, not a list", path, name)
		}
		for _, v := range values {
			switch v.(type) {
			case string, bool, int64, float64:
			default:
				return cli.Misusef("%s: %s must be a string, a number, a boolean or a list of them", path, name)
			}
			if err := c.Flags().Set(name, fmt.Sprint(v)); err != nil {
				return cli.Misusef("%s: %w", path, cli.FlagError(c, err))
			}
		}
	}
	return nil
}
