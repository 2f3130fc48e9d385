// Package post sends messages to the URL that a key of the Secret update-notify holds.
//
// It imports notice and plain alone of this project. It promises that the receiver learns the message and nothing else,
// and changes nothing: no redirect is followed, nothing of an answer is read but its status, and no credentials of the
// operator are sent. The URL is a secret itself, and stands in no error.
package post
