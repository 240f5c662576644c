// Package ssa is the intermediate representation of aton.
//
// A [Module] holds functions. A [Func] has one body, a [Block]: parameters, a
// list of [Op]s, and the values it returns. Control flow is structured: If and
// Loop own blocks, and nothing jumps, so a block is a scope. A value may be
// used after its definition in the same block and in every block nested there.
//
//	role              type
//	------------------------------------------------------------
//	an operation      *Op, named by its Kind ("aten::add")
//	a value           *Value: a result of an Op or a parameter of a Block
//	a place of use    *Use: an operand slot of an Op or a return slot of a Block
//	static facts      Type of a value, Sym (integers known symbolically)
//	literal data      Attr of an Op
//
// The text form is the one that PyTorch prints: [Parse] reads it in all its
// spellings, [Print] writes it, and Print(Parse(s)) is a fixpoint.
//
// # Invariants
//
// [Verify] checks, and its messages cite, these rules:
//
//  1. Every operand is defined before its use, in the same or an enclosing block.
//  2. Use lists mirror operands and returns exactly.
//  3. Value names are unique in a function, where given.
//  4. An op with a schema has as many operands as the schema has arguments.
//  5. prim::If has two blocks without parameters that return as many values as it has results.
//  6. prim::Loop has one block; it takes the trip number and the carried values,
//     and returns the condition and the carried values.
//  7. Every value has a type.
//  8. Tensor constants have data within their storage.
//  9. The op's dialect accepts the op (its own verifier).
package ssa
