// Package drain empties a node: one bounded eviction pass, which can be repeated at any time and returns what it
// found, and a look before the cordon at what would block it.
//
// It imports client-go, policy for its rules, fleet and, as the only package, kubectl's drain package for the choice
// of pods; the evictions are its own. It promises that a pod is only evicted by its UID, through the eviction API, so
// that PodDisruptionBudgets hold and a new pod of the same name is never hit; that nothing is deleted without that API
// unless the policy says force; that DaemonSet, mirror, finished and the operator's own pods stay; and that a pass
// which could not see everything never returns that nothing is left.
package drain
