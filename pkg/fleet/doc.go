// Package fleet is what the controller sees: one Node as far as decisions need it, and a Snapshot of
// all of them at one moment.
//
// It is for policy, which decides on snapshots, and for the edges that make them. It promises that a
// snapshot reaches out to nothing: all that a decision needs, the time included, is in it.
//
// It is pure: it imports intent, marker and the standard library's data types.
package fleet
