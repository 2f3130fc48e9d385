// Package mutants changes one operator, constant or statement of a pure package at a time and reports the changes that
// the unit tests of the package don't notice: code that no test would miss is code that no test holds.
//
// The mutations are drawn at random by a seed from all that there are. Those of functions stand as copies beside their
// originals in one program for each package's tests, and are switched on by a number; others, such as constants, are
// compiled one by one. All is compiled by `go test -c -overlay`, so no file of the checkout is touched, and the tests run
// with -short, a deadline and a bound on memory: a mutant that loops or grows for ever is noticed. One that doesn't compile
// isn't counted. Mutations that change nothing stand in testdata/equivalent.txt with the word why, and aren't drawn; an
// entry that no longer applies is an error.
//
// It is our own because of the mutation libraries for Go none draws by a seed, leaves the checkout alone without copying
// it for each mutant, and changes constants and removes statements as well as operators (gremlins, ooze, go-mutesting).
//
// It imports the standard library, pkg/errors, and dev/architecture for which packages are pure.
package mutants
