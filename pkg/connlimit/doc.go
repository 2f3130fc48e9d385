// Package connlimit bounds how many connections of strangers are open, so that none of them keeps another one out.
//
// It imports the standard library alone and knows of no protocol: a listener counts by it and closes what has to go.
package connlimit
