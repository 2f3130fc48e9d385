// Package marker owns the vocabulary that controller and agents share: the keys under
// bottlerocket.aws/ on a Node, which component writes each, and how values are decoded and encoded.
//
// It is for everything that reads or changes these keys; nothing else in the project spells one.
// It promises that no value from another process can do more than make its own node unreadable:
// Decode never panics and never guesses, it says which key it could not read. Text that is only shown is
// printable and short, but for what stood on the node before and is put back as it was. What it doesn't know
// (keys, and fields within JSON values) it keeps as it stands, for a newer build may have written it.
//
// It is pure: it imports plain, the standard library's codecs and a semantic version parser, no client, no clock, no
// context.
package marker
