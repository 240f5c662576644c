package filecheck

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: FileCheck CHECK-FILE [options] < INPUT
  --input-file FILE            the input; '-' is standard input
  --check-prefix P             the prefix of directives (CHECK); --check-prefixes A,B for several
  --comment-prefixes A,B       words that make a line a comment (COM,RUN)
  --implicit-check-not TEXT    may not occur between positive matches
  -DNAME=TEXT  -D#NAME=NUMBER  define a variable
  --strict-whitespace  --match-full-lines  --allow-empty  --allow-unused-prefixes  --enable-var-scope
`

// Main is the command: 0 when the input is as asked, 1 when not, 2 when the checks or the options are wrong.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	opts := Options{Defines: map[string]string{}}
	checkFile, inputFile := "", "-"
	wrong := func(format string, a ...any) int {
		fmt.Fprintf(stderr, "FileCheck: "+format+"\n", a...)
		return 2
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			if checkFile != "" {
				return wrong("one check file at a time: %s and %s", checkFile, arg)
			}
			checkFile = arg
			continue
		}
		if def, ok := strings.CutPrefix(arg, "-D"); ok {
			name, text, ok := strings.Cut(def, "=")
			if !ok {
				return wrong("%s: '=' is missing", arg)
			}
			opts.Defines[name] = text
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		boolean := map[string]*bool{
			"strict-whitespace": &opts.StrictWhitespace, "match-full-lines": &opts.MatchFullLines,
			"allow-empty": &opts.AllowEmpty, "allow-unused-prefixes": &opts.AllowUnused, "enable-var-scope": &opts.EnableVarScope,
		}
		if flag := boolean[name]; flag != nil {
			switch value {
			case "", "true":
				*flag = true
			case "false":
				*flag = false
			default:
				return wrong("%s: it is true or false", arg)
			}
			continue
		}
		if name == "help" || name == "h" {
			io.WriteString(stdout, usage)
			return 0
		}
		if name == "dump-input" || name == "color" { // LLVM's, about the look of its reports
			continue
		}
		if !hasValue {
			if len(args) == 0 {
				return wrong("%s: a value is missing\n%s", arg, usage)
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "check-prefix", "check-prefixes":
			opts.Prefixes = append(opts.Prefixes, strings.Split(value, ",")...)
		case "comment-prefixes":
			opts.CommentPrefixes = append(opts.CommentPrefixes, strings.Split(value, ",")...)
		case "implicit-check-not":
			opts.ImplicitCheckNot = append(opts.ImplicitCheckNot, value)
		case "input-file":
			inputFile = value
		default:
			return wrong("unknown option %s\n%s", arg, usage)
		}
	}
	if checkFile == "" {
		return wrong("the check file is missing\n%s", usage)
	}
	read := func(name string) (string, error) {
		if name == "-" {
			b, err := io.ReadAll(stdin)
			return string(b), err
		}
		b, err := os.ReadFile(name)
		return string(b), err
	}
	checks, err := read(checkFile)
	if err != nil {
		return wrong("%v", err)
	}
	input, err := read(inputFile)
	if err != nil {
		return wrong("%v", err)
	}
	if inputFile == "-" {
		inputFile = "<stdin>"
	}
	err = Check(File{checkFile, checks}, File{inputFile, input}, opts)
	switch {
	case err == nil:
		return 0
	case IsSetup(err):
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprintln(stderr, err)
	return 1
}
