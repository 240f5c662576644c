package main

import "slices"

// list and dict are containers of tensors. Variables share them, as in Python.
type list struct{ elems []*array }

type dict struct {
	keys  []string
	elems map[string]*array
}

// env has the variables of a program at some point, for one set of inputs: *array, int, *list, *dict and *numbers.
type env struct{ vars map[string]any }

// clone copies an env with all that is in it; what was one memory stays one.
func (e *env) clone() *env {
	storages := map[*[]float64]*[]float64{}
	arrays := map[*array]*array{}
	array_ := func(a *array) *array {
		if c := arrays[a]; c != nil {
			return c
		}
		s := storages[a.data]
		if s == nil {
			v := slices.Clone(*a.data)
			s = &v
			storages[a.data] = s
		}
		c := *a
		c.data = s
		arrays[a] = &c
		return &c
	}
	lists, dicts, ints := map[*list]*list{}, map[*dict]*dict{}, map[*numbers]*numbers{}
	out := &env{vars: make(map[string]any, len(e.vars))}
	for name, v := range e.vars {
		switch v := v.(type) {
		case *array:
			out.vars[name] = array_(v)
		case *list:
			if lists[v] == nil {
				c := &list{}
				for _, a := range v.elems {
					c.elems = append(c.elems, array_(a))
				}
				lists[v] = c
			}
			out.vars[name] = lists[v]
		case *dict:
			if dicts[v] == nil {
				c := &dict{keys: slices.Clone(v.keys), elems: map[string]*array{}}
				for k, a := range v.elems {
					c.elems[k] = array_(a)
				}
				dicts[v] = c
			}
			out.vars[name] = dicts[v]
		case *numbers:
			if ints[v] == nil {
				ints[v] = &numbers{slices.Clone(v.elems)}
			}
			out.vars[name] = ints[v]
		default:
			out.vars[name] = v
		}
	}
	return out
}

// arr gives a tensor variable.
func (e *env) arr(name string) *array { return e.vars[name].(*array) }
