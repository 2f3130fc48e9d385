// Package next decides an agent's next step, as a value.
//
// It is for the agent's loop, which carries the step out, and for platform, which fills in what a look at the host
// found. It promises that a step depends on four things alone: the intent, the agent's own last report, what the host
// says now, and what the process remembers (Memory), which only saves time and may be lost at any moment.
//
// It is pure: it imports intent, marker and the standard library's data types, no client, no context; it never reads a
// clock.
package next
