package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// maxCalls bounds the depth of calls.
const maxCalls = 200

// block evaluates a block of the function at hand in the current target block, and gives its returns.
func (s *walk) block(b *ssa.Block) []py.Value {
	return s.run(&frame{outer: s.frame, env: s.env, block: b, next: b.First(), loc: s.loc})
}

// run evaluates what is left of the blocks on a stack, and gives the returns of the one at the bottom.
func (s *walk) run(f *frame) []py.Value {
	at := s.moment()
	for {
		s.frame, s.env, s.loc, s.op = f, f.env, f.loc, at.op
		if f.next == nil {
			results := make([]py.Value, f.block.NumReturns())
			for i := range results {
				results[i] = s.get(f.block.Return(i))
			}
			if f.up == nil {
				s.restore(at)
				return results
			}
			f = s.finish(f, results)
			continue
		}
		s.step()
		o := f.next
		f.next = o.Next()
		if s.op = o; o.Loc != 0 {
			s.loc = o.Loc
		}
		if inner := s.enter(f, o); inner != nil {
			f = inner
			continue
		}
		end := s.try(func() { s.eval(o) })
		if why := end.failure; why != nil && why.losers == nil {
			why.losers = s.losersFor(o)
		}
		otherwise := end.split.otherwise
		if ask := end.split.ask; ask != nil && end.verdict == mustSplit {
			end.split.cond, end.split.ask = ask(), nil
		}
		switch {
		case end.verdict != mustSplit:
			end.propagate()
		case !inScope(end.split.cond, s.build.cur):
			panic(end.failure)
		default:
			var joined *frame
			var results []py.Value
			if split := s.try(func() { joined, results = s.split(f, o, end.split) }); split.verdict == failed && otherwise != nil {
				otherwise()
				f.next = o
				continue
			} else {
				split.propagate()
			}
			if joined.up == nil {
				s.restore(at)
				return results
			}
			f = s.finish(joined, results)
		}
	}
}

// losersFor are the operators of the program that lost what is not known of the operands of o.
func (s *walk) losersFor(o *ssa.Op) (ops []*ssa.Op) {
	for _, v := range o.Operands() {
		switch x := s.env[v.ID].(type) {
		case *py.Tensor:
			for _, v := range []*ssa.Value{x.Val, heap.ViewOf(x).Storage.State().Base} {
				if v != nil {
					ops = append(ops, s.losersOf(v)...)
				}
			}
		case *py.Maybe:
			ops = append(ops, s.losersOf(x.Has)...)
		}
	}
	return ops
}

// enter gives the frame of the block that an operator stands for, nil if it is evaluated as it is.
func (s *walk) enter(f *frame, o *ssa.Op) *frame {
	switch o.Kind {
	case "prim::If":
		c, ok := s.get(o.Operand(0)).(py.Const)
		if !ok {
			return nil
		}
		b := o.Blocks[0]
		if !c.Bool() {
			b = o.Blocks[1]
		}
		return &frame{up: f, op: o, env: f.env, block: b, next: b.First(), loc: s.loc, calls: f.calls}
	case "prim::CallFunction":
		l, ok := s.get(o.Operand(0)).(py.Const)
		if !ok || l.Kind != ssa.FuncLit {
			s.fail("unsupported-value", "the function that is called is not known")
		}
		return s.call(f, o, l.Str(), o.Operands()[1:])
	case "prim::CallMethod":
		x, ok := s.get(o.Operand(0)).(*py.Object)
		if !ok {
			s.fail("unsupported-value", "a method of a value that is no object")
		}
		return s.call(f, o, x.Class+"."+o.AttrStr("name", ""), o.Operands())
	}
	return nil
}

// call gives the frame of a function of the module.
func (s *walk) call(f *frame, o *ssa.Op, name string, args []*ssa.Value) *frame {
	fn := s.m.Func(name)
	if fn == nil {
		s.fail("missing-function", "%s is not in the model", name)
	}
	if len(args) != len(fn.Body.Params) || fn.Body.NumReturns() != 1 || len(o.Results) != 1 {
		s.fail("internal", "%s is called with %d arguments", name, len(args))
	}
	if f.calls == maxCalls {
		s.fail("recursion", "calls are nested too deeply at %s", name)
	}
	env := make([]py.Value, fn.NumValues())
	for i, p := range fn.Body.Params {
		env[p.ID] = s.get(args[i])
	}
	return &frame{up: f, op: o, env: env, block: fn.Body, next: fn.Body.First(), loc: s.loc, calls: f.calls + 1}
}

// finish gives the results of a block to the frame that waits for them.
func (s *walk) finish(f *frame, results []py.Value) *frame {
	s.env = f.up.env
	for i, r := range f.op.Results {
		if f.op.Kind != "prim::If" {
			s.build.name(results[i], r.Name)
		}
		s.put(r, results[i])
	}
	return f.up
}

// get is what a source value is known to be.
func (s *walk) get(v *ssa.Value) py.Value {
	x := s.env[v.ID]
	if x == nil {
		s.fail("internal", "%%%s has no value here", v.Name)
	}
	return s.refineSize(s.facts.refine(x))
}

func (s *walk) put(v *ssa.Value, x py.Value) { s.env[v.ID] = x }

// eval evaluates one operator in the current target block.
func (s *walk) eval(o *ssa.Op) {
	switch o.Kind {
	case "prim::If":
		s.ifOp(o)
		return
	case "prim::Loop":
		s.loopOp(o)
		return
	}
	args := make([]py.Value, o.NumOperands())
	for i := range args {
		args[i] = s.get(o.Operand(i))
	}
	rs := s.apply(o, args)
	if len(rs) != len(o.Results) {
		s.fail("internal", "gives %d results for %d", len(rs), len(o.Results))
	}
	for i, r := range rs {
		s.made(r, args)
		s.build.name(r, o.Results[i].Name)
		s.put(o.Results[i], r)
	}
}
