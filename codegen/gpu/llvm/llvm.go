// Package llvm lowers kernels to LLVM IR for NVPTX, one module for each kernel. Pointers are typed, which LLVM 14 to 19
// read; nothing is contracted, so that a multiplication and an addition round twice unless the kernel says fma.
package llvm

import (
	"fmt"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/kir"
)

const (
	globalSpace = 1
	sharedSpace = 3
)

// Lower makes a module with the kernel as its only function, named as the kernel.
func Lower(k *kir.Kernel) *ir.Module {
	m := ir.NewModule()
	m.TargetTriple = "nvptx64-nvidia-cuda"
	m.DataLayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
	l := &lowering{m: m, values: map[*kir.Node]value.Value{}, parts: map[*kir.Node][]value.Value{}, mems: map[*kir.Mem]value.Value{}, places: map[place]value.Value{}, intrinsics: map[string]*ir.Func{}}
	var params []*ir.Param
	for i, p := range k.Params {
		if p.Mem == nil {
			params = append(params, ir.NewParam(fmt.Sprintf("n%d", i), types.I32))
			continue
		}
		q := ir.NewParam(fmt.Sprintf("p%d", i), pointer(elem(p.Mem.Elem), globalSpace))
		if !p.Mem.Writes { // a buffer that is written may be read too, but by one parameter only
			q.Attrs = append(q.Attrs, enum.ParamAttrNoAlias, enum.ParamAttrReadOnly)
		}
		q.Attrs = append(q.Attrs, enum.ParamAttrNoCapture, ir.Align(16))
		params = append(params, q)
		l.mems[p.Mem] = q
	}
	l.params = params
	for _, s := range k.Shared {
		g := m.NewGlobal("shared."+s.Name, types.NewArray(uint64(s.Len), elem(s.Elem)))
		g.AddrSpace, g.Typ.AddrSpace = sharedSpace, sharedSpace
		g.Linkage = enum.LinkageInternal
		g.Init = constant.NewUndef(g.ContentType)
		g.Align = 16
		l.mems[s] = g
	}
	l.f = m.NewFunc(k.Name, types.Void, params...)
	l.f.CallingConv = enum.CallingConvPTXKernel
	l.annotate("kernel", 1)
	l.annotate("maxntidx", int64(k.Threads))
	if k.Resident > 0 {
		l.annotate("minctasm", int64(k.Resident))
	}
	l.at = l.f.NewBlock("entry")
	l.block(k.Body)
	l.at.NewRet(nil)
	return m
}

type lowering struct {
	m          *ir.Module
	f          *ir.Func
	at         *ir.Block
	params     []*ir.Param
	values     map[*kir.Node]value.Value
	parts      map[*kir.Node][]value.Value // of nodes with several results
	mems       map[*kir.Mem]value.Value
	places     map[place]value.Value
	intrinsics map[string]*ir.Func
	blocks     int
}

func (l *lowering) annotate(name string, n int64) {
	const key = "nvvm.annotations"
	def := &metadata.Tuple{MetadataID: metadata.MetadataID(len(l.m.MetadataDefs)),
		Fields: []metadata.Field{l.f, &metadata.String{Value: name}, constant.NewInt(types.I32, n)}}
	l.m.MetadataDefs = append(l.m.MetadataDefs, def)
	if l.m.NamedMetadataDefs == nil {
		l.m.NamedMetadataDefs = map[string]*metadata.NamedDef{}
	}
	if l.m.NamedMetadataDefs[key] == nil {
		l.m.NamedMetadataDefs[key] = &metadata.NamedDef{Name: key}
	}
	l.m.NamedMetadataDefs[key].Nodes = append(l.m.NamedMetadataDefs[key].Nodes, def)
}

func pointer(t types.Type, space types.AddrSpace) *types.PointerType {
	return &types.PointerType{ElemType: t, AddrSpace: space}
}

func elem(t kir.Type) types.Type {
	switch t {
	case kir.I1:
		return types.I1
	case kir.I8:
		return types.I8
	case kir.I16:
		return types.I16
	case kir.I32:
		return types.I32
	case kir.I64:
		return types.I64
	case kir.F16:
		return types.Half
	case kir.F32:
		return types.Float
	case kir.F64:
		return types.Double
	}
	panic("llvm: no type " + t.String()) // the cases are all types of kir
}

// value gives what a node was lowered to.
func (l *lowering) value(v *kir.Node) value.Value {
	switch {
	case v.Op == kir.Const && v.Type.IsFloat():
		return constant.NewFloat(elem(v.Type).(*types.FloatType), v.Float) // rounded by the builder
	case v.Op == kir.Const && v.Type == kir.I1:
		return constant.NewBool(v.Int != 0)
	case v.Op == kir.Const:
		return constant.NewInt(elem(v.Type).(*types.IntType), v.Int)
	case v.Op == kir.Scalar:
		return l.params[v.Int]
	case v.Op == kir.Result && len(v.Args) == 1:
		return l.parts[v.Args[0]][v.Int]
	}
	x := l.values[v]
	if x == nil {
		panic("llvm: " + v.Op.String() + " is used before it is lowered") // a Builder adds nodes behind their operands
	}
	return x
}

func (l *lowering) block(b *kir.Block) {
	for _, v := range b.Nodes {
		switch v.Op {
		case kir.Load:
			l.load(v)
		case kir.Store:
			l.store(v)
		case kir.For:
			l.loop(v)
		case kir.If:
			l.cond(v)
		case kir.Mma:
			l.mma(v)
		case kir.LoadMatrix:
			l.loadMatrix(v)
		case kir.CopyAsync:
			l.copyAsync(v)
		case kir.CopyCommit:
			l.at.NewCall(l.intrinsic("llvm.nvvm.cp.async.commit.group", types.Void))
		case kir.CopyWait:
			l.at.NewCall(l.intrinsic("llvm.nvvm.cp.async.wait.group", types.Void, types.I32), constant.NewInt(types.I32, v.Int))
		case kir.Barrier:
			l.at.NewCall(l.intrinsic("llvm.nvvm.barrier0", types.Void))
		default:
			l.values[v] = l.operation(v)
		}
	}
}

func (l *lowering) newBlock(name string) *ir.Block {
	l.blocks++
	return l.f.NewBlock(fmt.Sprintf("%s%d", name, l.blocks))
}

// place is where a pointer was computed: to an element of memory, in a basic block.
type place struct {
	mem   *kir.Mem
	index *kir.Node
	in    *ir.Block
}

// element is the pointer to an element. Neighbours share it but for a constant, which an access adds for nothing: an index is from 0 to below 1<<31, so
// that without a constant that is not negative it is still one of 32 bits.
func (l *lowering) element(mem *kir.Mem, index *kir.Node) value.Value {
	e := elem(mem.Elem)
	var off *kir.Node
	if index.Op == kir.Add && index.Args[1].Op == kir.Const && index.Args[1].Int >= 0 {
		off, index = index.Args[1], index.Args[0]
	}
	k := place{mem, index, l.at}
	p := l.places[k]
	if p == nil {
		if base, at := l.mems[mem], l.value(index); mem.Shared {
			p = l.at.NewGetElementPtr(types.NewArray(uint64(mem.Len), e), base, constant.NewInt(types.I32, 0), at)
		} else {
			p = l.at.NewGetElementPtr(e, base, at)
		}
		l.places[k] = p
	}
	if off != nil {
		return l.at.NewGetElementPtr(e, p, l.value(off))
	}
	return p
}

// address is the pointer to an element, or to a vector of them.
func (l *lowering) address(v *kir.Node) (p value.Value, t types.Type, align ir.Align) {
	mem := v.Mem
	space := types.AddrSpace(globalSpace)
	e := elem(mem.Elem)
	if mem.Shared {
		space = sharedSpace
	}
	p = l.element(mem, v.Args[0])
	if v.Words {
		t = types.I32
		if v.Width > 1 {
			t = types.NewVector(uint64(v.Width), types.I32)
		}
		return l.at.NewBitCast(p, pointer(t, space)), t, ir.Align(4 * v.Width)
	}
	if v.Width == 1 {
		return p, e, ir.Align(mem.Elem.Size())
	}
	t = types.NewVector(uint64(v.Width), e)
	return l.at.NewBitCast(p, pointer(t, space)), t, ir.Align(v.Width * mem.Elem.Size())
}

func (l *lowering) load(v *kir.Node) {
	p, t, align := l.address(v)
	x := l.at.NewLoad(t, p)
	x.Align = align
	if v.Width == 1 {
		l.values[v] = x
		return
	}
	for i := range v.Width {
		l.parts[v] = append(l.parts[v], l.at.NewExtractElement(x, constant.NewInt(types.I32, int64(i))))
	}
}

func (l *lowering) store(v *kir.Node) {
	p, t, align := l.address(v)
	var x value.Value
	if v.Width == 1 {
		x = l.value(v.Args[1])
	} else {
		x = constant.NewUndef(t)
		for i, e := range v.Args[1:] {
			x = l.at.NewInsertElement(x, l.value(e), constant.NewInt(types.I32, int64(i)))
		}
	}
	l.at.NewStore(x, p).Align = align
}

// loadMatrix calls the intrinsic of LLVM 14 and later.
func (l *lowering) loadMatrix(v *kir.Node) {
	name := "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3i16"
	if v.Int != 0 {
		name = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3i16"
	}
	t := pointer(types.I16, sharedSpace)
	f := l.intrinsic(name, types.NewStruct(types.I32, types.I32, types.I32, types.I32), t)
	d := l.at.NewCall(f, l.at.NewBitCast(l.element(v.Mem, v.Args[0]), t))
	for i := range uint64(4) {
		l.parts[v] = append(l.parts[v], l.at.NewExtractValue(d, i))
	}
}

// copyAsync calls the intrinsic of LLVM 14 and later, which has pointers to bytes: past the first cache for 16 bytes, which PTX has for no other number.
func (l *lowering) copyAsync(v *kir.Node) {
	cache := "ca"
	if v.Int == 16 {
		cache = "cg"
	}
	to, from := pointer(types.I8, sharedSpace), pointer(types.I8, globalSpace)
	f := l.intrinsic(fmt.Sprintf("llvm.nvvm.cp.async.%s.shared.global.%d", cache, v.Int), types.Void, to, from)
	l.at.NewCall(f, l.at.NewBitCast(l.element(v.Mem, v.Args[0]), to), l.at.NewBitCast(l.element(v.From, v.Args[1]), from))
}

func (l *lowering) loop(v *kir.Node) {
	body := v.Blocks[0]
	before := l.at
	head, in, exit := l.newBlock("loop"), l.newBlock("body"), l.newBlock("done")
	before.NewBr(head)
	var phis []*ir.InstPhi
	for i, p := range body.Params {
		first := v.Args[0]
		if i > 0 {
			first = v.Args[2+i]
		}
		phi := head.NewPhi(ir.NewIncoming(l.value(first), before))
		phis = append(phis, phi)
		l.values[p] = phi
	}
	head.NewCondBr(head.NewICmp(enum.IPredSLT, phis[0], l.value(v.Args[1])), in, exit)
	l.at = in
	l.block(body)
	next := l.at.NewAdd(phis[0], l.value(v.Args[2]))
	phis[0].Incs = append(phis[0].Incs, ir.NewIncoming(next, l.at))
	for i, r := range body.Results {
		phis[i+1].Incs = append(phis[i+1].Incs, ir.NewIncoming(l.value(r), l.at))
		l.parts[v] = append(l.parts[v], phis[i+1])
	}
	l.at.NewBr(head)
	l.at = exit
}

func (l *lowering) cond(v *kir.Node) {
	then, exit := l.newBlock("then"), l.newBlock("join")
	other := exit
	both := len(v.Blocks[1].Nodes) > 0 || len(v.Blocks[1].Results) > 0
	if both {
		other = l.newBlock("else")
	}
	l.at.NewCondBr(l.value(v.Args[0]), then, other)
	var values [2][]value.Value
	var ends [2]*ir.Block
	for i, b := range v.Blocks {
		if l.at = then; i == 1 {
			l.at = other
			if !both {
				break
			}
		}
		l.block(b)
		for _, r := range b.Results {
			values[i] = append(values[i], l.value(r))
		}
		ends[i] = l.at
		l.at.NewBr(exit)
	}
	l.at = exit
	for i := range values[0] {
		l.parts[v] = append(l.parts[v], exit.NewPhi(ir.NewIncoming(values[0][i], ends[0]), ir.NewIncoming(values[1][i], ends[1])))
	}
}

func (l *lowering) intrinsic(name string, ret types.Type, params ...types.Type) *ir.Func {
	f := l.intrinsics[name]
	if f == nil {
		var ps []*ir.Param
		for _, t := range params {
			ps = append(ps, ir.NewParam("", t))
		}
		f = l.m.NewFunc(name, ret, ps...)
		l.intrinsics[name] = f
	}
	return f
}

func (l *lowering) operation(v *kir.Node) value.Value {
	b := l.at
	args := make([]value.Value, len(v.Args))
	for i, a := range v.Args {
		args[i] = l.value(a)
	}
	float := len(v.Args) > 0 && v.Args[0].Type.IsFloat()
	switch v.Op {
	case kir.ThreadX:
		return b.NewCall(l.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", types.I32))
	case kir.BlockX:
		return b.NewCall(l.intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.x", types.I32))
	case kir.BlockY:
		return b.NewCall(l.intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.y", types.I32))
	case kir.BlockZ:
		return b.NewCall(l.intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.z", types.I32))
	case kir.Select:
		return b.NewSelect(args[0], args[1], args[2])
	case kir.Fma, kir.Sqrt, kir.Floor, kir.Ceil, kir.Trunc, kir.Rint, kir.Abs:
		return l.math(v, args)
	case kir.Shuffle:
		t, name := types.Type(types.I32), "i32"
		if v.Type == kir.F32 {
			t, name = types.Float, "f32"
		}
		f := l.intrinsic("llvm.nvvm.shfl.sync.bfly."+name, t, types.I32, t, types.I32, types.I32)
		return b.NewCall(f, constant.NewInt(types.I32, -1), args[0], constant.NewInt(types.I32, v.Int), constant.NewInt(types.I32, 31))
	case kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.ULt, kir.ULe:
		if float {
			return b.NewFCmp(map[kir.Op]enum.FPred{kir.Eq: enum.FPredOEQ, kir.Ne: enum.FPredUNE, kir.Lt: enum.FPredOLT, kir.Le: enum.FPredOLE}[v.Op], args[0], args[1])
		}
		return b.NewICmp(map[kir.Op]enum.IPred{kir.Eq: enum.IPredEQ, kir.Ne: enum.IPredNE, kir.Lt: enum.IPredSLT, kir.Le: enum.IPredSLE,
			kir.ULt: enum.IPredULT, kir.ULe: enum.IPredULE}[v.Op], args[0], args[1])
	case kir.SExt:
		return b.NewSExt(args[0], elem(v.Type))
	case kir.ZExt:
		return b.NewZExt(args[0], elem(v.Type))
	case kir.Narrow:
		return b.NewTrunc(args[0], elem(v.Type))
	case kir.Widen:
		return b.NewFPExt(args[0], elem(v.Type))
	case kir.Round:
		return b.NewFPTrunc(args[0], elem(v.Type))
	case kir.SToF:
		return b.NewSIToFP(args[0], elem(v.Type))
	case kir.UToF:
		return b.NewUIToFP(args[0], elem(v.Type))
	case kir.FToS:
		return b.NewFPToSI(args[0], elem(v.Type))
	case kir.FToU:
		return b.NewFPToUI(args[0], elem(v.Type))
	case kir.Pack:
		pair := value.Value(constant.NewUndef(types.NewVector(2, args[0].Type())))
		for i, x := range args {
			pair = b.NewInsertElement(pair, x, constant.NewInt(types.I32, int64(i)))
		}
		return b.NewBitCast(pair, types.I32)
	case kir.TF32:
		return b.NewCall(l.intrinsic("llvm.nvvm.f2tf32.rna", types.I32, types.Float), args[0])
	case kir.Bitcast:
		return b.NewBitCast(args[0], elem(v.Type))
	}
	if float {
		return floatBinary(b, v.Op, args[0], args[1])
	}
	return intBinary(b, v.Op, args[0], args[1])
}

// products are LLVM's names of products of matrices.
var products = [...]string{kir.Half: "m16n8k16.row.col.f32.f32", kir.BFloat16: "m16n8k16.row.col.bf16", kir.Tensor32: "m16n8k8.row.col.tf32", kir.S8: "m16n8k32.row.col.s8",
	kir.S8U8: "m16n8k32.row.col.s8.u8", kir.U8S8: "m16n8k32.row.col.u8.s8", kir.U8: "m16n8k32.row.col.u8"}

// mma calls the intrinsic of LLVM 14 and later, which has pairs of half as vectors and all else as words.
func (l *lowering) mma(v *kir.Node) {
	f := kir.Format(v.Int)
	word, sum := types.Type(types.I32), types.Type(types.Float)
	if f == kir.Half {
		word = types.NewVector(2, types.Half)
	}
	if f.Sum() == kir.I32 {
		sum = types.I32
	}
	var params []types.Type
	var args []value.Value
	for i, a := range v.Args {
		x := l.value(a)
		if i < 6 {
			if params = append(params, word); word != types.I32 {
				x = l.at.NewBitCast(x, word)
			}
		} else {
			params = append(params, sum)
		}
		args = append(args, x)
	}
	d := l.at.NewCall(l.intrinsic("llvm.nvvm.mma."+products[f], types.NewStruct(sum, sum, sum, sum), params...), args...)
	for i := range uint64(4) {
		l.parts[v] = append(l.parts[v], l.at.NewExtractValue(d, i))
	}
}

func floatBinary(b *ir.Block, op kir.Op, x, y value.Value) value.Value {
	switch op {
	case kir.Add:
		return b.NewFAdd(x, y)
	case kir.Sub:
		return b.NewFSub(x, y)
	case kir.Mul:
		return b.NewFMul(x, y)
	case kir.Div:
		return b.NewFDiv(x, y)
	}
	panic("llvm: no " + op.String() + " of floats") // lowerings of kernels make no other on floats
}

func intBinary(b *ir.Block, op kir.Op, x, y value.Value) value.Value {
	switch op {
	case kir.Add:
		return b.NewAdd(x, y)
	case kir.Sub:
		return b.NewSub(x, y)
	case kir.Mul:
		return b.NewMul(x, y)
	case kir.Div:
		return b.NewSDiv(x, y)
	case kir.Rem:
		return b.NewSRem(x, y)
	case kir.UDiv:
		return b.NewUDiv(x, y)
	case kir.URem:
		return b.NewURem(x, y)
	case kir.And:
		return b.NewAnd(x, y)
	case kir.Or:
		return b.NewOr(x, y)
	case kir.Xor:
		return b.NewXor(x, y)
	case kir.Shl:
		return b.NewShl(x, y)
	case kir.LShr:
		return b.NewLShr(x, y)
	case kir.AShr:
		return b.NewAShr(x, y)
	}
	panic("llvm: no " + op.String() + " of integers") // nor on integers
}

// math calls the intrinsics that every LLVM lowers to one instruction.
func (l *lowering) math(v *kir.Node, args []value.Value) value.Value {
	name, t := "llvm."+v.Op.String(), elem(v.Type)
	if v.Op == kir.Abs {
		name = "llvm.fabs"
	}
	name += "." + v.Type.String()
	params := make([]types.Type, len(args))
	for i := range params {
		params[i] = t
	}
	return l.at.NewCall(l.intrinsic(name, t, params...), args...)
}
