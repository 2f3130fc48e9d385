// Package plain makes text from elsewhere safe to show: a node's name, a host's answer, an annotation, or an error that
// quotes one of them may hold anything, and a terminal obeys control characters.
//
// Line is for one value: a log field, an Event, a cell of a table, an annotation. Text and JSON are writers for a whole
// output, so that a value that didn't go through Line does no harm either. Letters, marks, numbers, punctuation and
// symbols of every script stay. Replaced are control characters, those that change the direction of writing, those of
// no width, white space other than the blank, and what isn't UTF-8. So an emoji that is joined of several comes apart.
//
// It is pure: it imports the standard library alone.
package plain
