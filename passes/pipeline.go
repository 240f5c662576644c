package passes

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
)

// Pipeline is a sequence of passes, ready to run.
//
//	inline,cse,fixpoint(simplify,dce),legalize{opset=17,target=ort}
//
// Options stand in braces, values with commas or braces in double quotes, with Go's escapes. fixpoint runs what it holds until
// nothing changes, at most ten times or fixpoint{max=N}.
type Pipeline struct {
	steps   []step
	remarks []string // on the text that spelled it
}

type step struct {
	pass    *Pass
	options map[string]any // all that the pass declares: an int, a bool or a string
	given   string         // those that were spelled, as spelled
	body    []step         // of a fixpoint
	max     int
}

// Named is a pipeline with a name and options of its own. An option of a pass whose value is $opset has that of the
// pipeline's option opset.
type Named struct {
	Name, Doc string
	// Text spells the pipeline; Steps do it one by one, with reasons. One of them is set.
	Text    string
	Steps   []Step
	Options []Option
}

// Step is a part of a pipeline, such as "cse" or "fixpoint(cse,dce)", and why it stands where it does.
type Step struct {
	Run, Why string
	// If lists options of the pipeline, separated by commas. The step is left out where all of them have their defaults.
	If string
}

// Spelling is the text of the pipeline, with all of its steps.
func (n *Named) Spelling() string { return n.spelling(nil) }

// spelling leaves out the steps that the values of the options give nothing to do; nil stands for no values.
func (n *Named) spelling(values map[string]any) string {
	if len(n.Steps) == 0 {
		return n.Text
	}
	var runs []string
	for _, s := range n.Steps {
		if s.If == "" || values == nil || slices.ContainsFunc(strings.Split(s.If, ","), func(name string) bool { return !n.Option(name).IsDefault(values[name]) }) {
			runs = append(runs, s.Run)
		}
	}
	return strings.Join(runs, ",")
}

// Option returns an option of the pipeline by its name, and nil if it has none of that name.
func (n *Named) Option(name string) *Option {
	for i := range n.Options {
		if n.Options[i].Name == name {
			return &n.Options[i]
		}
	}
	return nil
}

// Set is what pipeline strings may name. Goroutines may share it, and pipelines that it gives; a Runner with observers is for one run
// at a time.
type Set struct {
	Passes  []*Pass
	Named   []Named
	Renamed []Renamed

	remarks []string // on the names of insertion points
}

// Pass finds a pass by its name, or a former one, nil if there is none.
func (s *Set) Pass(name string) *Pass {
	name, _ = s.Current(name)
	for _, p := range s.Passes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

const defaultRounds = 10

// Parse reads a pipeline.
func (s *Set) Parse(text string) (*Pipeline, error) {
	p := &Pipeline{}
	var err error
	if p.steps, err = s.parse(text, nil, 0, &p.remarks); err != nil {
		return nil, err
	}
	return p, nil
}

// Build makes a named pipeline with values for its options: an int for those that are declared as Int, a bool for Bool,
// a string for others. What has no value has its default.
func (s *Set) Build(name string, values map[string]any) (*Pipeline, error) {
	n := s.Lookup(name)
	if n == nil {
		return nil, fmt.Errorf("there is no pipeline %q", name)
	}
	options, err := complete(name, n.Options, values)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{remarks: slices.Clone(s.remarks)}
	if p.steps, err = s.parse(n.spelling(options), options, 0, &p.remarks); err != nil {
		return nil, err
	}
	return p, nil
}

// Lookup returns a named pipeline, and nil if the set has none of that name.
func (s *Set) Lookup(name string) *Named {
	for i := range s.Named {
		if s.Named[i].Name == name {
			return &s.Named[i]
		}
	}
	return nil
}

type pipelineParser struct {
	set   *Set
	text  string
	pos   int
	depth int
	// vars are the values of $names: the options of the named pipeline whose text this is.
	vars map[string]any
	// remarks receives what there is to say of the text.
	remarks *[]string
}

func (s *Set) parse(text string, vars map[string]any, depth int, remarks *[]string) ([]step, error) {
	if depth > 20 {
		return nil, fmt.Errorf("pipelines name each other in a circle: %s", text)
	}
	p := &pipelineParser{set: s, text: text, vars: vars, depth: depth, remarks: remarks}
	steps, err := p.list()
	if err == nil && p.pos < len(p.text) {
		err = fmt.Errorf("unexpected %q", p.text[p.pos:])
	}
	if err == nil && depth == 0 {
		err = check(steps)
	}
	if err != nil {
		return nil, fmt.Errorf("pipeline %q: %w", text, err)
	}
	return steps, nil
}

func (p *pipelineParser) blanks() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *pipelineParser) take(c byte) bool {
	p.blanks()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *pipelineParser) name() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte(",(){}= \t\n\"", p.text[p.pos]) < 0 {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *pipelineParser) list() ([]step, error) {
	p.blanks()
	if p.pos == len(p.text) {
		return nil, nil
	}
	var steps []step
	for {
		s, err := p.item()
		if err != nil {
			return nil, err
		}
		steps = append(steps, s...)
		if !p.take(',') {
			return steps, nil
		}
	}
}

func (p *pipelineParser) item() ([]step, error) {
	name := p.name()
	if name == "" {
		return nil, fmt.Errorf("a pass is missing at %q", p.text[p.pos:])
	}
	given, spelled, err := p.options()
	if err != nil {
		return nil, err
	}
	name, given, spelled = p.current(name, given, spelled)
	if name == "fixpoint" {
		options, err := fill(name, []Option{{Name: "max", Default: fmt.Sprint(defaultRounds), Int: true}}, given)
		if err != nil {
			return nil, err
		}
		most, _ := options["max"].(int)
		if !p.take('(') {
			return nil, fmt.Errorf("fixpoint: '(' is missing")
		}
		body, err := p.list()
		if err != nil {
			return nil, err
		}
		if !p.take(')') {
			return nil, fmt.Errorf("fixpoint: ')' is missing")
		}
		return []step{{body: body, max: most, given: spelled}}, nil
	}
	if pass := p.set.Pass(name); pass != nil {
		options, err := fill(name, pass.Options, given)
		return []step{{pass: pass, options: options, given: spelled}}, err
	}
	for _, n := range p.set.Named {
		if n.Name != name {
			continue
		}
		options, err := fill(name, n.Options, given)
		if err != nil {
			return nil, err
		}
		return p.set.parse(n.spelling(options), options, p.depth+1, p.remarks)
	}
	known := []string{"fixpoint"}
	for _, q := range p.set.Passes {
		known = append(known, q.Name)
	}
	for _, n := range p.set.Named {
		known = append(known, n.Name)
	}
	return nil, fmt.Errorf("unknown pass %q%s", name, diag.DidYouMean(name, known))
}

// options reads the options of a pass or pipeline: values as they are spelled, or those of $names, which have types. spelled
// says the same again, with the values of names.
func (p *pipelineParser) options() (given map[string]any, spelled string, err error) {
	start := p.pos
	if !p.take('{') {
		return nil, "", nil
	}
	given = map[string]any{}
	var again []string
	named := false
	for !p.take('}') {
		name := p.name()
		if name == "" {
			return nil, "", fmt.Errorf("the name of an option is missing at %q", p.text[p.pos:])
		}
		text := "true" // {verbose} is {verbose=true}
		if p.take('=') {
			if p.take('"') {
				p.pos--
				quoted, err := strconv.QuotedPrefix(p.text[p.pos:])
				if err != nil {
					return nil, "", fmt.Errorf("option %s: no closing '\"'", name)
				}
				p.pos += len(quoted)
				if text, err = strconv.Unquote(quoted); err != nil {
					return nil, "", fmt.Errorf("option %s: %w", name, err)
				}
			} else {
				text = p.name()
			}
		}
		if _, twice := given[name]; twice {
			return nil, "", fmt.Errorf("option %s comes twice", name)
		}
		given[name] = spelling(text)
		if v, ok := p.vars[strings.TrimPrefix(text, "$")]; ok && strings.HasPrefix(text, "$") {
			given[name], named = v, true
		}
		again = append(again, name+"="+quoteOption(given[name]))
		if !p.take(',') {
			if !p.take('}') {
				return nil, "", fmt.Errorf("'}' is missing")
			}
			break
		}
	}
	if named {
		return given, "{" + strings.Join(again, ",") + "}", nil
	}
	return given, p.text[start:p.pos], nil
}

// spelling is a value that an option's type has yet to read.
type spelling string

// quoteOption spells a value, in quotes where it needs them.
func quoteOption(v any) string {
	s := fmt.Sprint(v)
	if s == "" || strings.ContainsAny(s, ",(){}= \t\n\"") {
		return strconv.Quote(s)
	}
	return s
}

// fill adds the defaults to the options that were given.
func fill(owner string, declared []Option, given map[string]any) (map[string]any, error) {
	typed := make(map[string]any, len(given))
	for name, v := range given {
		typed[name] = v
		text, isText := v.(spelling)
		if !isText {
			continue
		}
		if i := slices.IndexFunc(declared, func(o Option) bool { return o.Name == name }); i >= 0 {
			var err error
			if typed[name], err = declared[i].parse(string(text)); err != nil {
				return nil, fmt.Errorf("%s: %w", owner, err)
			}
		}
	}
	return complete(owner, declared, typed)
}

// complete checks values of options and adds the defaults.
func complete(owner string, declared []Option, given map[string]any) (map[string]any, error) {
	all := map[string]any{}
	names := make([]string, 0, len(declared))
	for i := range declared {
		o := &declared[i]
		names = append(names, o.Name)
		v, ok := given[o.Name]
		if !ok {
			var err error
			if v, err = o.parse(o.Default); err != nil && o.Default != "" {
				return nil, fmt.Errorf("%s: %w", owner, err)
			}
		} else if err := o.check(v); err != nil {
			return nil, fmt.Errorf("%s: %w", owner, err)
		}
		all[o.Name] = v
	}
	var wrong []string
	for name := range given {
		if _, ok := all[name]; !ok {
			wrong = append(wrong, name)
		}
	}
	if len(wrong) > 0 {
		sort.Strings(wrong)
		return nil, fmt.Errorf("%s has no option %q%s", owner, wrong[0], diag.DidYouMean(wrong[0], names))
	}
	return all, nil
}

// String spells the pipeline.
func (p *Pipeline) String() string { return spell(p.steps) }

func spell(steps []step) string {
	parts := make([]string, len(steps))
	for i, s := range steps {
		if s.pass == nil {
			parts[i] = "fixpoint" + s.given + "(" + spell(s.body) + ")"
		} else {
			parts[i] = s.pass.Name + s.given
		}
	}
	return strings.Join(parts, ",")
}

// Until is the pipeline up to and including the last run of the named pass; ok is false if it has no such pass. A fixpoint
// counts as a whole.
func (p *Pipeline) Until(pass string) (part *Pipeline, ok bool) {
	for i := len(p.steps) - 1; i >= 0; i-- {
		if has(&p.steps[i], pass) {
			return &Pipeline{p.steps[:i+1], p.remarks}, true
		}
	}
	return p, false
}

// Steps lists the steps as they are spelled, a fixpoint as a whole.
func (p *Pipeline) Steps() []string {
	steps := make([]string, len(p.steps))
	for i := range p.steps {
		steps[i] = spell(p.steps[i : i+1])
	}
	return steps
}

// From is the pipeline without its first n steps.
func (p *Pipeline) From(n int) *Pipeline { return &Pipeline{p.steps[n:], p.remarks} }

// Then is the pipeline followed by another one. It is an error if a pass of the other one stands at the wrong place there.
func (p *Pipeline) Then(next *Pipeline) (*Pipeline, error) {
	steps := slices.Concat(p.steps, next.steps)
	return &Pipeline{steps, slices.Concat(p.remarks, next.remarks)}, check(steps)
}

// Passes lists the names of the passes in order, each once.
func (p *Pipeline) Passes() []string {
	var names []string
	for s := range all(p.steps) {
		if !slices.Contains(names, s.pass.Name) {
			names = append(names, s.pass.Name)
		}
	}
	return names
}

// OptionValues lists the values that passes of the pipeline have for an option of that name, in order, each once.
func (p *Pipeline) OptionValues(name string) []any {
	var values []any
	for s := range all(p.steps) {
		if v, ok := s.options[name]; ok && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// all goes through the passes in order, those of fixpoints included.
func all(steps []step) iter.Seq[*step] {
	return func(yield func(*step) bool) {
		for i := range steps {
			if steps[i].pass != nil {
				if !yield(&steps[i]) {
					return
				}
				continue
			}
			for s := range all(steps[i].body) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

func has(s *step, pass string) bool {
	if s.pass != nil {
		return s.pass.Name == pass
	}
	return slices.ContainsFunc(s.body, func(t step) bool { return has(&t, pass) })
}
