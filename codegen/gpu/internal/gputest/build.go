// Package gputest has kernels written by hand, each with inputs and the expected output: what the simulator's readers
// and the PTX printer are compared on.
package gputest

import (
	"fmt"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Builder writes one kernel.
type Builder struct {
	M      *ir.Module
	F      *ir.Func
	C      *ir.Block // the current block
	blocks int
}

// Global is a pointer to global memory, Shared one to shared memory.
func Global(t types.Type) *types.PointerType {
	return &types.PointerType{ElemType: t, AddrSpace: 1}
}

// Shared is a pointer to shared memory.
func Shared(t types.Type) *types.PointerType {
	return &types.PointerType{ElemType: t, AddrSpace: 3}
}

// New starts a module with one kernel.
func New(name string, params ...*ir.Param) *Builder {
	m := ir.NewModule()
	m.TargetTriple = "nvptx64-nvidia-cuda"
	m.DataLayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
	f := m.NewFunc(name, types.Void, params...)
	f.CallingConv = enum.CallingConvPTXKernel
	mark := &metadata.Tuple{Fields: []metadata.Field{f, &metadata.String{Value: "kernel"}, constant.NewInt(types.I32, 1)}}
	m.MetadataDefs = append(m.MetadataDefs, mark)
	m.NamedMetadataDefs = map[string]*metadata.NamedDef{"nvvm.annotations": {Name: "nvvm.annotations", Nodes: []metadata.Node{mark}}}
	b := &Builder{M: m, F: f}
	b.C = f.NewBlock("entry")
	return b
}

// Array is a parameter that points to global memory.
func Array(name string, t types.Type, out bool) *ir.Param {
	p := ir.NewParam(name, Global(t))
	p.Attrs = append(p.Attrs, enum.ParamAttrNoAlias, enum.ParamAttrNoCapture)
	if !out {
		p.Attrs = append(p.Attrs, enum.ParamAttrReadOnly)
	}
	return p
}

// I32 is an integer constant.
func I32(v int64) *constant.Int { return constant.NewInt(types.I32, v) }

// F32 is a float constant.
func F32(v float64) *constant.Float { return constant.NewFloat(types.Float, float64(float32(v))) }

// Func declares an intrinsic once.
func (b *Builder) Func(name string, ret types.Type, params ...types.Type) *ir.Func {
	for _, f := range b.M.Funcs {
		if f.Name() == name {
			return f
		}
	}
	var ps []*ir.Param
	for _, t := range params {
		ps = append(ps, ir.NewParam("", t))
	}
	return b.M.NewFunc(name, ret, ps...)
}

// Call calls an intrinsic whose parameters have the arguments' types.
func (b *Builder) Call(name string, ret types.Type, args ...value.Value) value.Value {
	var ts []types.Type
	for _, a := range args {
		ts = append(ts, a.Type())
	}
	return b.C.NewCall(b.Func(name, ret, ts...), args...)
}

// Sreg reads a special register such as tid.x.
func (b *Builder) Sreg(name string) value.Value {
	return b.Call("llvm.nvvm.read.ptx.sreg."+name, types.I32)
}

// Barrier is bar.sync 0.
func (b *Builder) Barrier() { b.Call("llvm.nvvm.barrier0", types.Void) }

// Bfly exchanges a float between the lanes of a warp whose numbers differ in the bits of mask.
func (b *Builder) Bfly(v value.Value, mask int64) value.Value {
	return b.Call("llvm.nvvm.shfl.sync.bfly.f32", types.Float, I32(-1), v, I32(mask), I32(31))
}

// Fma is a*b+c rounded once.
func (b *Builder) Fma(x, y, z value.Value) value.Value {
	suffix := map[types.Type]string{types.Float: "f32", types.Double: "f64", types.Half: "f16"}[x.Type()]
	return b.Call("llvm.fma."+suffix, x.Type(), x, y, z)
}

// SharedArray is a static array in shared memory.
func (b *Builder) SharedArray(name string, t types.Type, n uint64) *ir.Global {
	at := types.NewArray(n, t)
	g := b.M.NewGlobal(name, at)
	g.AddrSpace, g.Typ.AddrSpace = 3, 3
	g.Linkage = enum.LinkageInternal
	g.Init = constant.NewUndef(at)
	g.Align = 16
	return g
}

// At is the address of element i.
func (b *Builder) At(p value.Value, i value.Value) value.Value {
	pt := p.Type().(*types.PointerType)
	if at, ok := pt.ElemType.(*types.ArrayType); ok {
		g := b.C.NewGetElementPtr(at, p, I32(0), i)
		return g
	}
	return b.C.NewGetElementPtr(pt.ElemType, p, i)
}

// Load reads element i.
func (b *Builder) Load(p value.Value, i value.Value) value.Value {
	a := b.At(p, i)
	l := b.C.NewLoad(a.Type().(*types.PointerType).ElemType, a)
	return l
}

// Store writes element i.
func (b *Builder) Store(p, i, v value.Value) { b.C.NewStore(v, b.At(p, i)) }

// LoadVec reads a vector of n elements from element i, which is a multiple of n.
func (b *Builder) LoadVec(p, i value.Value, n uint64) value.Value {
	a := b.At(p, i)
	pt := a.Type().(*types.PointerType)
	vt := types.NewVector(n, pt.ElemType)
	l := b.C.NewLoad(vt, b.C.NewBitCast(a, &types.PointerType{ElemType: vt, AddrSpace: pt.AddrSpace}))
	l.Align = ir.Align(16)
	return l
}

// StoreVec writes a vector.
func (b *Builder) StoreVec(p, i, v value.Value) {
	a := b.At(p, i)
	pt := a.Type().(*types.PointerType)
	s := b.C.NewStore(v, b.C.NewBitCast(a, &types.PointerType{ElemType: v.Type(), AddrSpace: pt.AddrSpace}))
	s.Align = ir.Align(16)
}

func (b *Builder) newBlock(name string) *ir.Block {
	b.blocks++
	return b.F.NewBlock(fmt.Sprintf("%s%d", name, b.blocks))
}

// If runs then where c holds.
func (b *Builder) If(c value.Value, then func()) {
	t, end := b.newBlock("then"), b.newBlock("end")
	b.C.NewCondBr(c, t, end)
	b.C = t
	then()
	b.C.NewBr(end)
	b.C = end
}

// For counts i from lo by step while it is less than hi and carries values along; it returns their last state.
func (b *Builder) For(lo, hi, step value.Value, init []value.Value, body func(i value.Value, v []value.Value) []value.Value) []value.Value {
	head, loop, end := b.newBlock("head"), b.newBlock("loop"), b.newBlock("done")
	pre := b.C
	b.C.NewBr(head)
	b.C = head
	i := head.NewPhi(ir.NewIncoming(lo, pre))
	phis := make([]*ir.InstPhi, len(init))
	vals := make([]value.Value, len(init))
	for k, v := range init {
		phis[k] = head.NewPhi(ir.NewIncoming(v, pre))
		vals[k] = phis[k]
	}
	head.NewCondBr(head.NewICmp(enum.IPredSLT, i, hi), loop, end)
	b.C = loop
	next := body(i, vals)
	i2 := b.C.NewAdd(i, step)
	i.Incs = append(i.Incs, ir.NewIncoming(i2, b.C))
	for k, v := range next {
		phis[k].Incs = append(phis[k].Incs, ir.NewIncoming(v, b.C))
	}
	b.C.NewBr(head)
	b.C = end
	return vals
}

// Return ends the kernel.
func (b *Builder) Return() { b.C.NewRet(nil) }
