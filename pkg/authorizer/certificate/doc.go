// Package certificate makes, renews and rotates the proxy's serving certificate and its CA, without a
// restart and without a gap. It imports client-go and the standard library's crypto.
//
// The state is one Secret, written by compare-and-swap, so that replicas agree; what agents trust is one
// ConfigMap. It promises that a CA signs nothing in use before agents were told of it for a while, that
// an old CA is trusted until it ends, and that each is renewed at two thirds of its life.
package certificate
