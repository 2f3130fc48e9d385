// Package next decides an agent's next step, as a value.
//
// It is for the agent's loop, which carries the step out, and for platform, which fills in what a look at the host
// found. It promises that a step depends on four things alone: the intent, the agent's own last report, what the host
// says now, and what the process remembers (Memory), which only saves time and may be lost at any moment.
//
// A wish to lock the host (marker.Lock) is carried out by stabilize alone, and once: the setting is changed after an
// accepted busy, only over what stood there before or was asked for, and ready comes when the host chooses by it. What
// becomes of the setting after an answer is a fact, and is not undone.
//
// It is pure: it imports intent, marker and the standard library's data types, no client, no context; it never reads a
// clock.
package next
