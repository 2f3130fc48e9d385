// Package check says whether something may start on a node, as far as it isn't the node's own matter: by what the
// policy says of the fleet, of the node's group and of the version, by the groups that go first, by the room that is
// left, and by alerts.
//
// It is for the planner, which asks the checks of a list in their order: the first refusal is the reason that an
// administrator reads. It promises that a check depends on its argument alone, and that what can't be read, or isn't
// known, refuses (S6, S8, S9).
//
// It is pure: it imports the lifecycle and the budgets of the planner, plan, policy, policy/window, fleet, intent,
// marker and the standard library's data types, no client, no clock, no rand, no context.
package check
