// Command cmd prints the certificate authorities of dev/image/roots, for the Dockerfile.
package main

import (
	"fmt"
	"os"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image/roots"
)

func main() {
	if _, err := os.Stdout.Write(roots.PEM()); err != nil {
		fmt.Fprintf(os.Stderr, "roots: %v\n", err)
		os.Exit(1)
	}
}
