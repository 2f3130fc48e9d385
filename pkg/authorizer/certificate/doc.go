// Package certificate makes, renews and rotates the proxy's serving certificate and its CA, without a restart and
// without a gap. It imports client-go and the standard library's crypto, and nothing of the operator.
//
// The state is one Secret, written by compare-and-swap, so that replicas agree; the CAs that agents trust are in one
// ConfigMap. Both are shipped empty, so the proxy needs only get and update of these two names. It promises:
//
//   - A certificate is served only after the ConfigMap has its CA. A new CA is published for Life.Settle before it
//     signs anything; an old one is trusted until it expires.
//   - CA and serving certificate are renewed at two thirds of their life.
//   - A damaged Secret is repaired: step by step while agents can still verify the serving certificate, at once if they
//     can't.
//   - A certificate of the user's own is read again from its files in each pass.
package certificate
