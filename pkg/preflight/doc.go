// Package preflight judges a cluster before and after the operator is installed in it: from a Snapshot to Findings,
// each with a verdict, and a remedy for all that isn't well. The kubectl plugin gathers the snapshot and prints what is
// found. docs/reference/checks.md explains each check.
//
// What could not be read is said to be unknown, and never taken for well or for wrong. Before the operator is installed
// its parts are absent, which is no failure.
//
// It is pure: it imports plain, marker, fleet, policy and the standard library's values, and no client, clock or
// Kubernetes type. The same snapshot gives the same findings in the same order.
package preflight
