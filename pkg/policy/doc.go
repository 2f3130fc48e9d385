// Package policy decides who may go: it takes a snapshot of the fleet and the settings and returns a
// plan, which holds the steps to carry out now and, for every managed node that gets none, a typed
// reason and a sentence.
//
// It is for the controller, which carries plans out, and for whoever wants to print one. It promises
// that a plan depends on its two arguments alone, that nothing unreadable is ever taken for permission,
// and that no plan takes the count of nodes in our hands above the settings' limit (S1, S6, S8, S9).
//
// It is pure: it imports fleet, intent, marker and the standard library's data types, no client, no
// clock, no rand, no context.
package policy
