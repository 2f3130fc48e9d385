// Package platform is the port to one machine that updates in place: an interface to observe it and to send it
// commands, and its typed errors.
//
// It may import pkg/agent/next and the standard library. Implementations are packages under it; each promises to send
// each request once, to wait for no command and to retry nothing.
package platform
