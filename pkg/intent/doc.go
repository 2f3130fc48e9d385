// Package intent is the contract between the controller and the agents as values: the phases of a node, the one table
// of the controller's acts, and what the controller may expect of an agent's answer.
//
// It is for the packages that decide (planner, agent/next) and for the loops that carry out (controller, agent).
// It promises that a node's phase is derived from its marks alone and never stored, and that an act outside the table
// changes nothing.
//
// It is pure: it imports marker and the standard library's data types, no client, no context; it never reads a clock.
package intent
