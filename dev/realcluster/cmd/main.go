// Command cmd says in one line what this machine lacks for a cluster of real nodes.
package main

import (
	"fmt"
	"os"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
)

func main() {
	if why := realcluster.Missing(); why != "" {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(1)
	}
}
