// Package planted holds mistakes that could be made in the product, each as a change of its
// source, and a test that the searches of dev/sim find every one of them: a search that finds nothing
// proves nothing unless it would have found something. The same for the attacks on the proxy
// (pkg/authorizer), on the planner (pkg/planner) and by words that a terminal obeys (pkg/plain and where they leave): each
// check that could be forgotten is a mistake that one of them finds.
//
// A mistake is never in a product file: it is compiled in by `go build -overlay`. One that no longer
// applies to the source, or that isn't found, fails.
package planted
