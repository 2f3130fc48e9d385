// Package controller is the controller's loop: gather a snapshot, let the planner plan on it, carry the plan out.
//
// It imports the pure packages, the edges kube, drain and alert, telemetry and client-go's leader election, and
// never the agent. It promises that it decides nothing itself, that a step which can't be carried out
// stops no other, that a crash at any line loses nothing (all that counts is on the Nodes and in the
// slot list before the next step begins), and that nothing is written while nothing changes.
package controller
