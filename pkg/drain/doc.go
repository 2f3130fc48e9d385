// Package drain empties a node: one bounded eviction pass that can be repeated at any time, and says
// what it found; and a look, before the cordon, at what would stand in its way.
//
// It imports client-go, policy for the rules that it goes by and, alone in the project, kubectl's drain
// package for its choice of pods; the evictions are its own. It promises that a pod is only ever evicted
// by its UID, through the eviction API, so that PodDisruptionBudgets hold and a namesake is never hit;
// that nothing is deleted past that API unless the policy says force; that DaemonSet, mirror, finished
// and the operator's own pods stay; and that a pass which could not see everything never says that
// nothing is left.
package drain
