// Package plan is what the operator means to do, as a value: the steps to carry out now and, for every managed node
// that gets none, a typed reason and a message.
//
// It is for the planner, which makes plans, for the controller, which carries them out in the order of Work, and for
// all that shows them. It promises that a plan can be printed, tested, logged and counted, and that nothing in it
// reaches out to anything.
//
// It is pure: it imports policy, fleet, intent, marker, wave, plain and the standard library's data types, no client,
// no clock, no context.
package plan
