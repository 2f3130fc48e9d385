// Package platform is the operator's view of one machine that updates in place: an interface to look
// at it and to put commands to it, and the errors that callers need to tell apart.
//
// It may import pkg/intent and the standard library. Implementations live in packages under it; each
// promises to send what it is asked to send once, to wait for no command and to retry nothing.
package platform
