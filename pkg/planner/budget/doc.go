// Package budget counts which nodes are out of service, in the fleet, in a group and by the values of a label, against
// the limits of the policy.
//
// It is for the planner, which hands out what is left. It promises that of the nodes that the operator takes out of
// service there are never more than a limit (S1), and that a limit with no room left names the nodes that use it.
//
// It is pure: it imports plan, policy, fleet and the standard library's data types, no client, no clock, no rand, no
// context.
package budget
