package batch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/aton-project/aton/dialects/onnx/profiles"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Commands gives those flags of aton export, check and verify that a batch may have, fresh ones in each call; nil for any other word.
type Commands func(do string) *pflag.FlagSet

// form is how the value of an option names a file.
type form int

const (
	wholePath form = iota // the value is a path
	namedPath             // NAME= stands before the path
	orRuntime             // the value is the name of a runtime, or else a path
)

// paths are the options whose values are paths, or have them.
var paths = map[string]form{
	"input-file": namedPath, "only-ops": orRuntime,
	"weights": wholePath, "rules": wholePath, "functions": wholePath, "data": wholePath, "expected": wholePath, "reference": wholePath,
}

// hasFile says whether a value of an option names a file.
func hasFile(option, value string) bool {
	f, isPath := paths[option]
	return isPath && !(f == orRuntime && slices.Contains(profiles.Names(), value))
}

// IsPath says whether the value of an option is a path, or has one.
func IsPath(option string) bool {
	_, ok := paths[option]
	return ok
}

// check says what is wrong with options of a command.
func (c Commands) check(do string, options []Option) error {
	return c.checkWith(do, c(do), options)
}

func (c Commands) checkWith(do string, flags *pflag.FlagSet, options []Option) error {
	if flags == nil {
		return fmt.Errorf("there is no command %q; it is export, check or verify", do)
	}
	for _, o := range options {
		f := flags.Lookup(o.Name)
		if f == nil {
			var known []string
			flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
			return fmt.Errorf("%s has no option %q%s", do, o.Name, diag.DidYouMean(o.Name, known))
		}
		value := o.Value
		if hasFile(o.Name, value) != (o.File != nil) {
			return fmt.Errorf("%s: it is no option with a file", o.Name)
		}
		if o.File != nil {
			named := paths[o.Name] == namedPath
			if named != strings.HasSuffix(value, "=") || !named && value != "" {
				return fmt.Errorf("%s: want NAME=FILE", o.Name)
			}
			value += "file"
		}
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf("%s: %q: %w", o.Name, o.Value, err)
		}
	}
	return nil
}

// checker checks the options of many items. The flags of a command are costly to make, and keep what they are given: they are made anew now
// and then. Options that were right before are not looked at again.
type checker struct {
	commands Commands
	do       string
	flags    *pflag.FlagSet
	uses     int
	right    map[Option]bool
}

func (c *checker) options(options []Option) error {
	for _, o := range options {
		known := Option{Name: o.Name, Value: o.Value}
		if o.File == nil && c.right[known] {
			continue
		}
		if c.flags == nil || c.uses == 256 {
			c.flags, c.uses, c.right = c.commands(c.do), 0, map[Option]bool{}
		}
		c.uses++
		if err := c.commands.checkWith(c.do, c.flags, []Option{o}); err != nil {
			return err
		}
		if o.File == nil {
			c.right[known] = true
		}
	}
	return nil
}

// option makes an option of a value; paths are relative to a folder, and to the root where they lie below it.
func option(name, value, folder, root string) (Option, error) {
	if !hasFile(name, value) {
		return Option{Name: name, Value: value}, nil
	}
	prefix := ""
	if paths[name] == namedPath {
		before, file, ok := strings.Cut(value, "=")
		if !ok {
			return Option{}, fmt.Errorf("%s: want NAME=FILE, not %q", name, value)
		}
		prefix, value = before+"=", file
	}
	s, err := pathSource(value, folder, root)
	return Option{Name: name, Value: prefix, File: &s}, err
}

// pathSource returns the source for a path that is relative to a folder. Below the root, workers receive it relative to the root.
func pathSource(path, folder, root string) (Source, error) {
	if path == "" {
		return Source{}, fmt.Errorf("the path is empty")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return Source{Path: filepath.ToSlash(rel)}, nil
	}
	return Source{Path: filepath.Clean(path)}, nil
}

// refusal is a problem that is found before the command runs.
func refusal(id, format string, args ...any) cli.Problem {
	return cli.Problem{ID: id, Level: "error", Message: fmt.Sprintf(format, args...)}
}
