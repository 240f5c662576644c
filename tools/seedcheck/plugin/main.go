// Command plugin is aton export with operators of its own, as a user would
// write it: the autograd functions of the seed example python_op.
//
//	plugin export MODEL -o OUT --opset N [--input NAME:TYPE]... [--output-names a,b]
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 || args[0] != "export" {
		return fmt.Errorf("usage: plugin export MODEL -o OUT --opset N [--input NAME:TYPE]")
	}
	o := aton.Options{Table: table()}
	f := flag.NewFlagSet("export", flag.ContinueOnError)
	out := f.String("o", "", "the ONNX file to write")
	f.IntVar(&o.Opset, "opset", aton.DefaultOpset, "the ONNX opset")
	names := f.String("output-names", "", "names of the outputs")
	f.Func("input", "NAME:TYPE", func(s string) error {
		in, err := spec.Parse(s)
		o.Inputs = append(o.Inputs, in)
		return err
	})
	if err := f.Parse(args[2:]); err != nil {
		return err
	}
	if *names != "" {
		o.OutputNames = strings.Split(*names, ",")
	}
	m, err := aton.Load(args[1], o)
	if err != nil {
		return err
	}
	return aton.Export(m, *out, o)
}

// table has rules for the two functions; they tell them apart by the names of the classes.
func table() *aten.Table {
	t := aten.NewTable()
	t.Register("prim::PythonOp", aten.Def{Lower: func(l *aten.Lowering) *ssa.Value {
		x, least := l.Input(0), 0.0
		switch name := l.PythonName(); name {
		case "MyRelu":
		case "MyClip":
			var err error
			if least, err = strconv.ParseFloat(l.PythonScalars()[0], 64); err != nil {
				l.Fail("%v", err)
			}
		default:
			l.Fail("the function %s", name)
		}
		return l.Op("Clip", x, l.Like(x, least))
	}})
	return t
}
