// Package architecture holds the shape of the code: which package may import which, what the pure ones
// may not touch, what every package has, and what the top folder holds.
//
// Its checks are plain functions over what `go list` and the parser say, so each is also tried on code
// that breaks it. The rules stand in rules.go; a package that isn't placed there is an error, so a new
// one gets its place when it is made.
//
// It imports the standard library and pkg/errors, and dev/controlplane for the place of the checkout.
package architecture
