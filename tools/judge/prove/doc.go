// Package prove proves that rewrite rules keep results: not for inputs that are drawn, but for all elements that tensors may have.
//
// A claim is a graph, what a rule made of it, and sizes. Both are evaluated on symbolic elements. What moves elements is done by the
// kernels of the interpreter, on the numbers of the symbolic elements; sums of products and reductions are found by running the
// kernels on unit vectors; what computes an element becomes a term of the operator. Terms of constants are computed by the kernel.
// Pairs of terms that differ go to the solver (z3, a process that reads SMT-LIB 2), in one theory after the other:
//
//   - identical terms: nothing is left to ask;
//   - every number: the kernels are run on all values of the variables, where these have 16 bits together;
//   - terms: integers are bit vectors that wrap around, of floats only comparisons, signs, choices, conversions and roundings to
//     integers mean something, sums and products are any functions;
//   - IEEE 754: sums, products, quotients and roots as well;
//   - real numbers, for rules that state that they round elsewhere (Rounds in rewrite.Rule): every operator is its formula, from the
//     expression of its row where it has one. Constants count to six digits.
//
// Sums of products are taken as functions of the products, whatever their order: kernels accumulate in float64.
//
// # The bound
//
// Claims have known ranks and sizes. Rules that are patterns are tried on all types, on ranks up to 3 with sizes that differ, and on
// all permutations; rules in Go on the graphs of their text tests, on the parts of these, and on copies with changed sizes, ranks,
// element types, attributes and constants; symbols of sizes are given all values from 0 to 3. Elements are never bound. An elementwise
// operator treats each element alone, so one element of each way to broadcast suffices; what moves elements does not look at them, so
// that a rule that confuses two axes does so at sizes 2 and 3. Rank 3 has an axis before and one behind the axis that an operator is about;
// operators that treat a run of axes alike have one more. That no greater rank or size behaves otherwise is not proved.
//
// A refutation counts only with inputs for which the interpreter computes other results.
package prove
