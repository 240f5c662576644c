package exec

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// held is memory that buffers hold. It is used again when none does any more.
type held struct {
	memory Memory
	bytes  int64
	users  int
}

// pool is memory for what has no place in the arena.
type pool struct {
	held map[*plan.Buffer]*held
	free map[int64][]*held // by size
}

func newPool() pool { return pool{map[*plan.Buffer]*held{}, map[int64][]*held{}} }

// take gets memory for one user.
func (r *run) take(bytes int64) (*held, error) {
	if list := r.pool.free[bytes]; len(list) > 0 {
		h := list[len(list)-1]
		r.pool.free[bytes] = list[:len(list)-1]
		h.users = 1
		return h, nil
	}
	m, err := r.Backend.Alloc(bytes)
	if err != nil {
		return nil, err
	}
	r.own = append(r.own, m)
	return &held{m, bytes, 1}, nil
}

// drop gives memory up for one of its users.
func (r *run) drop(h *held) {
	if h == nil {
		return
	}
	if h.users--; h.users == 0 {
		r.pool.free[h.bytes] = append(r.pool.free[h.bytes], h)
	}
}

// forget takes the memory and the content of a buffer away.
func (r *run) forget(f *plan.Buffer) {
	r.drop(r.pool.held[f])
	delete(r.pool.held, f)
	delete(r.memory, f)
	delete(r.fresh, f)
}

// handed is a value on its way from one turn of a loop to the next, or out of a block.
type handed struct {
	host   interp.Value
	onHost bool
	shape  []int64
	memory Memory
	held   *held // nil if the memory is another's
	// list are the elements of a sequence.
	list   []handed
	isList bool
}

// hand takes a value that has been computed. Its memory stays until it is dropped.
func (r *run) hand(v *ssa.Value) (handed, error) {
	if _, is := v.Type.(*ssa.ListType); is {
		list, err := r.list(v)
		return handed{list: list, isList: true}, err
	}
	if t := onnx.ConstOf(v); t != nil {
		return handed{host: interp.Of(t), onHost: true, shape: t.Shape}, nil
	}
	if r.isOnHost(v) {
		x := r.host[v.ID]
		return handed{host: x, onHost: true, shape: x.Tensor.Shape}, nil
	}
	shape, err := r.shape(v)
	if err != nil {
		return handed{}, err
	}
	f := r.Plan.BufferOf(v)
	if root := r.Plan.Root(v); r.isOnHost(root) {
		x := interp.Of(r.host[root.ID].Tensor.Reshape(shape))
		return handed{host: x, onHost: true, shape: shape}, nil
	}
	if f == nil {
		return handed{}, fmt.Errorf("value %s is not at hand", v.Name)
	}
	m, err := r.device(f, false) // an empty value may have none yet
	if err != nil {
		return handed{}, err
	}
	h := r.pool.held[f]
	if h != nil {
		h.users++
	}
	return handed{shape: shape, memory: m, held: h}, nil
}

// receive makes a value be what was handed on, of which it is another user.
func (r *run) receive(v *ssa.Value, x handed) error {
	if x.isList {
		r.lists[v], r.onHost[v.ID] = x.list, false
		return nil
	}
	f := r.Plan.BufferOf(v)
	if f != nil {
		r.forget(f)
	}
	if err := r.bindShape(v, x.shape); err != nil {
		return err
	}
	r.onHost[v.ID] = x.onHost
	if x.onHost {
		r.set(v, x.host)
		return nil
	}
	if f == nil { // nobody reads it
		return nil
	}
	if x.held != nil {
		x.held.users++
		r.pool.held[f] = x.held
	}
	r.memory[f], r.fresh[f] = x.memory, true
	return nil
}

// begin prepares a region for a turn: what the last one left is gone.
func (r *run) begin(g *plan.Region) {
	for _, f := range g.Buffers {
		r.forget(f)
	}
	for _, name := range g.Symbols {
		delete(r.env, name)
	}
}

// scalar brings an operand of one element to the host, def if it is absent.
func (r *run) scalar(v *ssa.Value, def int64, rep *StepReport) (int64, error) {
	if v == nil {
		return def, nil
	}
	x, err := r.value(v)
	if err != nil {
		return 0, err
	}
	if x.Tensor == nil || x.Tensor.NumElements() != 1 {
		return 0, fmt.Errorf("%v is no single number", x)
	}
	if !r.isOnHost(v) && onnx.ConstOf(v) == nil {
		rep.HostRead += x.Tensor.NumBytes()
	}
	return x.Tensor.Int64s()[0], nil
}

func (r *run) control(s *plan.Step, rep *StepReport) error {
	if s.Op.Kind == "onnx::If" {
		cond, err := r.scalar(s.Op.Operand(0), 0, rep)
		if err != nil {
			return err
		}
		g := s.Control.Regions[0]
		if cond == 0 {
			g = s.Control.Regions[1]
		}
		r.begin(g)
		if err := r.steps(g.Steps); err != nil {
			return err
		}
		for i, v := range s.Op.Results {
			x, err := r.hand(g.Block.Return(i))
			if err != nil {
				return err
			}
			if err := r.receive(v, x); err != nil {
				return err
			}
			r.drop(x.held)
		}
		return nil
	}
	return r.loop(s, rep)
}

func (r *run) loop(s *plan.Step, rep *StepReport) error {
	o, g := s.Op, s.Control.Regions[0]
	body := g.Block
	trips, err := r.scalar(o.Operand(0), math.MaxInt64, rep)
	if err != nil {
		return err
	}
	cond, err := r.scalar(o.Operand(1), 1, rep)
	if err != nil {
		return err
	}
	n := plan.NumCarried(o)
	state := make([]handed, n)
	for i := range state {
		if state[i], err = r.hand(o.Operand(2 + i)); err != nil {
			return err
		}
	}
	parts := make([][]handed, len(o.Results)-n)
	turn, _ := s.Control.Turn.Name()
	endless := plan.Endless(o)
	for i := int64(0); i < trips && cond != 0; i++ {
		if i >= maxTurns {
			return fmt.Errorf("more than %d turns", int64(maxTurns))
		}
		r.begin(g)
		r.env[turn] = i
		r.set(body.Params[0], interp.Of(tensor.ScalarInt(i)))
		r.set(body.Params[1], interp.Of(tensor.FullInt(tensor.Bool, []int64{}, 1)))
		for k, x := range state {
			if err := r.receive(body.Params[2+k], x); err != nil {
				return err
			}
		}
		if err := r.steps(g.Steps); err != nil {
			return err
		}
		if !endless {
			if cond, err = r.scalar(body.Return(0), 1, rep); err != nil {
				return err
			}
		}
		for k := range state {
			if plan.Kept(o, k) {
				continue
			}
			r.drop(state[k].held)
			if state[k], err = r.hand(body.Return(1 + k)); err != nil {
				return err
			}
		}
		for k := range parts {
			x, err := r.hand(body.Return(1 + n + k))
			if err != nil {
				return err
			}
			parts[k] = append(parts[k], x)
		}
	}
	shapes := make([][]int64, len(parts))
	for k, list := range parts {
		if shapes[k], err = r.stack(s, k, list); err != nil {
			return err
		}
	}
	r.begin(g) // a result may have a symbol of the body, which has stood for the last turn
	for k, x := range state {
		if err := r.receive(o.Results[k], x); err != nil {
			return err
		}
		r.drop(x.held)
	}
	for k, shape := range shapes {
		if err := r.bindShape(o.Results[n+k], shape); err != nil {
			return err
		}
	}
	return nil
}

// maxTurns bounds the turns of a loop, as the interpreter does.
const maxTurns = 1 << 31

// stack puts what the turns of a loop gave into one tensor, and gives its sizes.
func (r *run) stack(s *plan.Step, k int, list []handed) ([]int64, error) {
	g := s.Control.Regions[0]
	n := plan.NumCarried(s.Op)
	v, part := s.Op.Results[n+k], g.Block.Return(1+n+k)
	shape := []int64{int64(len(list))}
	if len(list) > 0 {
		shape = append(shape, list[0].shape...)
	} else {
		for _, e := range part.Tensor().Dims {
			size, _ := e.Eval(r.env) // what only a turn would tell is 0
			shape = append(shape, size)
		}
	}
	r.onHost[v.ID] = false
	if f := r.Plan.BufferOf(v); f != nil {
		r.forget(f)
	}
	if err := r.bindShape(v, shape); err != nil {
		return nil, err
	}
	turn, _ := s.Control.Turn.Name()
	for i, x := range list {
		if fmt.Sprint(x.shape) != fmt.Sprint(list[0].shape) {
			return nil, fmt.Errorf("turn %d gives a tensor of the sizes %v, turn 0 one of %v", i, x.shape, list[0].shape)
		}
		r.env[turn] = int64(i) // the other symbols are still what they were in the last turn
		if err := r.receive(part, x); err != nil {
			return nil, err
		}
		r.drop(x.held)
		if err := r.steps(s.Control.Stack[k : k+1]); err != nil {
			return nil, err
		}
	}
	return shape, nil
}

// read brings a small tensor from the device: its elements are the values of symbols.
func (r *run) read(v *ssa.Value, rep *StepReport) error {
	x, err := r.value(v)
	if err != nil {
		return err
	}
	if !r.isOnHost(v) {
		rep.HostRead += x.Tensor.NumBytes()
	}
	return r.bind(v, x)
}

// resolve infers the sizes of an op's results where they depend on the elements of its operands.
func (r *run) resolve(o *ssa.Op, rep *StepReport) error {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	f := m.NewFunc("main")
	b := &onnx.Builder{Block: f.Body}
	operands := make([]*ssa.Value, o.NumOperands())
	for i := range operands {
		v := o.Operand(i)
		switch {
		case v == nil:
		case plan.ReadsContent(o.Kind, i):
			x, err := r.value(v)
			if err != nil {
				return err
			}
			if !r.isOnHost(v) && onnx.ConstOf(v) == nil {
				rep.HostRead += x.Tensor.NumBytes()
			}
			operands[i] = b.Const(x.Tensor)
		default:
			shape, err := r.shape(v)
			if err != nil {
				return err
			}
			operands[i] = f.Body.AddParam("", ssa.Tensor(v.DType(), ssa.Sizes(shape)...))
		}
	}
	types := make([]ssa.Type, len(o.Results))
	for i := range types {
		types[i] = ssa.AnyTensor
	}
	c := f.Body.Append(o.Kind, 0, operands, types...)
	c.Attrs = o.Attrs
	if err := onnx.Infer(c); err != nil {
		return err
	}
	for i, v := range o.Results {
		shape, ok := c.Results[i].Tensor().Static()
		if !ok {
			return fmt.Errorf("the sizes of result %d, %s, do not follow from the operands", i, c.Results[i].Tensor())
		}
		if err := r.bindShape(v, shape); err != nil {
			return err
		}
	}
	return nil
}
