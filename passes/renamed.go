package passes

import (
	"fmt"
	"maps"
	"slices"
)

// Renamed is a former name of a pass, which is accepted for one release.
type Renamed struct {
	Was, Is string
	// Options are those that the pass needs to do what it did under the former name.
	Options map[string]string
}

// Current is the name of a pass or a pipeline, given its present name or a former one. remark says that the name was a former one,
// and is empty otherwise.
func (s *Set) Current(name string) (current, remark string) {
	if r := s.renamed(name); r != nil {
		return r.Is, r.remark()
	}
	return name, ""
}

// CurrentNames are the present names of passes, given present or former ones. warn receives a remark on each former one.
func (s *Set) CurrentNames(names []string, warn func(remark string)) []string {
	out := make([]string, len(names))
	for i, name := range names {
		var remark string
		if out[i], remark = s.Current(name); remark != "" {
			warn(remark)
		}
	}
	return out
}

func (r *Renamed) remark() string { return fmt.Sprintf("the pass %s is called %s", r.Was, r.Is) }

func (s *Set) renamed(name string) *Renamed {
	i := slices.IndexFunc(s.Renamed, func(r Renamed) bool { return r.Was == name })
	if i < 0 || slices.ContainsFunc(s.Passes, func(p *Pass) bool { return p.Name == name }) { // a user's pass may have the name
		return nil
	}
	return &s.Renamed[i]
}

// current resolves a former name, and adds the options that it stands for to those that are given.
func (p *pipelineParser) current(name string, given map[string]any, spelled string) (string, map[string]any, string) {
	r := p.set.renamed(name)
	if r == nil {
		return name, given, spelled
	}
	if remark := r.remark(); !slices.Contains(*p.remarks, remark) {
		*p.remarks = append(*p.remarks, remark)
	}
	for _, option := range slices.Sorted(maps.Keys(r.Options)) {
		if _, ok := given[option]; ok {
			continue
		}
		if given == nil {
			given = map[string]any{}
		}
		given[option] = spelling(r.Options[option])
		add := option + "=" + quoteOption(r.Options[option]) + "}"
		if len(spelled) > len("{}") {
			spelled = spelled[:len(spelled)-1] + "," + add
		} else {
			spelled = "{" + add
		}
	}
	return r.Is, given, spelled
}

// currentKeys are insertion points by the present names of the passes. What there is to say of former ones goes to the set's remarks.
func (s *Set) currentKeys(at map[string]string) map[string]string {
	out := make(map[string]string, len(at))
	for _, name := range slices.Sorted(maps.Keys(at)) {
		text := at[name]
		if now, remark := s.Current(name); remark != "" && at[now] == "" {
			name, s.remarks = now, append(slices.Clip(s.remarks), remark)
		}
		out[name] = text
	}
	return out
}
