// Package certificate makes, renews and rotates the proxy's serving certificate and its CA, without a
// restart and without a gap. It imports client-go and the standard library's crypto, and nothing of the
// operator.
//
// The state is one Secret, written by compare-and-swap, so that replicas agree; what agents trust is one
// ConfigMap. Both are shipped empty, so only get and update of these two names are needed. It promises:
//
//   - A certificate is in use only after the ConfigMap names its CA. A new CA is published for a while
//     (Life.Settle) before it signs anything; an old one is trusted until it ends.
//   - CA and serving certificate are renewed at two thirds of their life.
//   - A Secret that was damaged is repaired: step by step while agents can still verify what is served,
//     at once if they can't.
//   - A certificate of the user's own is served as the files stand, and looked at again as often.
package certificate
