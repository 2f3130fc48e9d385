// Package kube is the controller's edge to the API server: it keeps what the fleet looks like (nodes and
// agent pods, stripped of what is not used here), writes changes of single nodes, keeps the list of
// slots, and writes Events. For a process that runs once, as the plugin, it reads the same once and writes nothing.
//
// It imports client-go and the pure packages, and nothing of the loops. It promises that a node's view is
// never older than this process's own last write to it, that every write to a Node carries the
// resourceVersion it was decided on, and that the slot list is written by compare-and-swap alone.
package kube
