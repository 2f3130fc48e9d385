// Package connlimit limits how many unauthenticated connections are open, so that no client keeps another one out.
//
// It imports the standard library alone and knows no protocol: a listener counts with it, and closes the connection
// that it names.
package connlimit
