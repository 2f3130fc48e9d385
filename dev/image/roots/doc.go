// Package roots writes the certificate authorities that Mozilla trusts as one PEM file, the one that the
// images carry.
//
// They come from a pinned Go module, so the file is the same on every machine, in `make image` and in the
// Dockerfile, which runs the command in cmd; they are updated like any other module.
//
// It imports the standard library and that module, golang.org/x/crypto/x509roots/fallback, and nothing
// else, for the Dockerfile copies this folder alone.
package roots
