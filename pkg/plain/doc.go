// Package plain is what words from elsewhere look like once the operator shows them: a node, a host, an annotation, or
// an error that quotes one of them may hold anything, and a terminal obeys some of it.
//
// Line is for one value, where it is put into something that is read: a log field, an Event, a cell of a table, a mark.
// Text and JSON are for the ways out, over all that is written there, so that a value that was forgotten can't do harm.
// Honest words come out as they are: letters, marks, numbers, punctuation and symbols of every script. What is replaced is
// what has no picture of its own: control characters, the signs that turn the direction of writing around, those of no
// width, white space but the blank, and what isn't UTF-8. So an emoji that is joined of several comes apart.
//
// It is pure: it imports the standard library's texts and unicode tables.
package plain
