// Package lifecycle is the life of one node: it says what the next step of a node is, from New to the end of its soak.
//
// It is for the planner, which asks it of every managed node and hands out the room that steps ask for. A walk of one
// node's step begins in next.go and goes on in the file of its phase; view.go has what is seen of the node, change.go
// what is written to it, and await.go the live looks and hooks that a step waits for. It promises that nothing it is
// given is written to, that a step follows from its Input alone, and that whatever must be seen live right before a
// step stands in the step (S2, S6, S7, S10).
//
// It is pure: it imports plan, policy, fleet, intent, marker and the standard library's data types, no client, no
// clock, no rand, no context.
package lifecycle
