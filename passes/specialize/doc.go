// Package specialize turns a TorchScript program into a pure graph for given
// inputs, by partial evaluation in one forward walk.
//
// What is known at export is computed: Python numbers, strings, lists, dicts,
// tuples, module attributes, shapes and dtypes, branches on them. What depends
// on data is emitted as pure aten operators with inferred types. Mutation is
// resolved on the way, because shapes, containers and aliases depend on each
// other: a tensor is a view chain over a storage, a write makes a new value of
// the storage, and other views of it are derived anew when they are read.
//
// State that a branch or a loop changes (storages, lists, dicts, attributes)
// becomes results of the If and carried values of the Loop. Where the branches of
// an If leave no common form, what follows the If goes into both of them. Loops
// are kept where their body computes tensors and one type fits all iterations;
// those that only compute numbers, and those whose containers change shape over a
// known number of iterations, are unrolled.
//
// What cannot be resolved is an error at the user's line, never a guess.
//
// README.md tells of the rooms of the package.
package specialize
