package telemetry

// Mux is for tests that need no listener.
var Mux = mux
