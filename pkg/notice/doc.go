// Package notice decides what a receiver of messages is told of a rollout: what there is to tell by a snapshot and its
// plan, what of it was told before, and when to try again.
//
// It is pure: it imports plain, marker, intent, fleet, policy, plan and rollout of this project, and the standard
// library's data types. It promises that each thing is told at least once while its receiver answers within a day, and
// not twice within an hour: a try is written down before it is made, so that the process that makes the next one knows
// of it, also if that is another leader.
package notice
