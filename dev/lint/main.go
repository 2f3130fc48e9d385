// Command lint is a vet tool, for `go vet -vettool`: it finds errors that are compared where they may be wrapped, and
// switches over our own closed types that neither list all values nor say what holds for the others. staticcheck runs
// beside it, as a command of its own. Their versions are pinned in this folder's go.mod, so the product's has none of
// them.
package main

import (
	"fmt"
	"os"

	"github.com/nishanths/exhaustive/passes/exhaustive"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// ours are the types whose values we know.
const ours = `^github\.com/bottlerocket-os/bottlerocket-update-operator/`

func main() {
	for flag, value := range map[string]string{
		// A default case decides for all values that are not listed.
		"d":        "true",
		"typeonly": ours,
	} {
		if err := exhaustive.Analyzer.Flags.Set(flag, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	unitchecker.Main(errorlint.NewAnalyzer(), exhaustive.Analyzer)
}
