package telemetry

// Mux is for tests that need no listener, ServeOn for those that have their own.
var (
	Mux     = mux
	ServeOn = serve
)
