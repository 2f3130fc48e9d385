// Package next decides the runner's next step for one node, as a value.
//
// It is for the runner's loop, which carries the step out. It promises that a step depends on three things alone: what
// the Node shows, what the pods of the node's plans show, and what the process remembers (Memory), which only saves
// time and may be lost at any moment. Of S2 and S3 it holds the part that is decided before a request: no pod is asked
// for without `busy`, at or after intent-until, or while a pod of that intent is there; and `ready` is never without
// the proof (S7).
//
// It is pure: it imports marker, fleet and the standard library's data types, no client, no context; it never reads a
// clock.
package next
