package main

import "runtime/debug"

// controllerGCPercent is for a process that caches the whole fleet and is idle nearly always: its memory matters more
// than the cost of a collection. `make bench` prints the effect.
const controllerGCPercent = 25

// tune sets the Go runtime's parameters for a mode unless the environment does.
func tune(chosen string, getenv func(string) string) {
	if chosen == "controller" && getenv("GOGC") == "" {
		debug.SetGCPercent(controllerGCPercent)
	}
}
