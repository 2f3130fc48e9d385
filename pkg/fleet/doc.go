// Package fleet has what the controller knows of the nodes: a Node as far as decisions need it, and a Snapshot of all
// nodes at one moment.
//
// It is for the planner, which decides on snapshots, and for the packages that make them. It promises that a snapshot
// has all that a decision needs, the time included.
//
// It is pure: it imports intent, marker and the standard library's data types.
package fleet
