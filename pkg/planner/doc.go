// Package planner decides which nodes may be updated now: it takes a snapshot of the fleet and the policy's settings
// and returns a plan.
//
// It is for the controller, which carries plans out, and for all that shows one. It promises that a plan depends on its
// two arguments alone, that nothing unreadable is ever taken for permission, and that no plan takes the count of nodes
// out of service above the settings' limit (S1, S6, S8, S9).
//
// It is pure: it imports the packages below it (lifecycle, check, budget), plan, policy, policy/window, fleet, intent,
// marker, plain and the standard library's data types, no client, no clock, no rand, no context.
package planner
