// Package rollout keeps account of rollouts: when each version's began and ended, what its nodes waited for, and, by
// what the nodes remember, how it went.
//
// It is pure: it imports plain, marker, intent, fleet and plan of this project, and the standard library's data types.
// It promises that what it keeps is bounded, and that a report says what was forgotten, or not seen.
package rollout
