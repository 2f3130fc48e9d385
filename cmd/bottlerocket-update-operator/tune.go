package main

import "runtime/debug"

// controllerGCPercent is for a process that keeps a view of the whole fleet and rests nearly always: what
// waits to be collected costs more than a collection. `make bench` prints what it comes to.
const controllerGCPercent = 25

// tune fits the Go runtime to a mode, and leaves alone what the environment says about it.
func tune(chosen string, getenv func(string) string) {
	if chosen == "controller" && getenv("GOGC") == "" {
		debug.SetGCPercent(controllerGCPercent)
	}
}
