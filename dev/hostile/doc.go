// Package hostile has the words of a node, a host or a person that wants to be obeyed by the terminal on which they are
// read, or to be taken for the operator's own. Tests put them wherever a text comes from elsewhere, and look for them
// on every way out.
package hostile
