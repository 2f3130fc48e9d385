// Package intent is the protocol between controller and agents as values: the phases of a node, the
// one table of the controller's acts, and the agent's next step.
//
// It is for the packages that decide (policy) and for the loops that carry out (controller, agent).
// It promises that a node's phase is derived from its marks alone and never stored, that an act
// outside the table changes nothing, and that an agent's step depends only on the intent, its own
// last report and what the host says now.
//
// It is pure: it imports marker and the standard library's data types, no client, no clock, no context.
package intent
