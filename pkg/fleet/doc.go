// Package fleet is what the controller knows: one Node as far as decisions need it, and a Snapshot of all of them at
// one moment.
//
// It is for the planner, which decides on snapshots, and for the edges that make them. It promises that a snapshot is
// complete: all that a decision needs is in it, the time included.
//
// It is pure: it imports intent, marker and the standard library's data types.
package fleet
