package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// checkPolicy prints the mistakes and warnings of a policy file, and returns the exit status.
func checkPolicy(path string, stdout, stderr io.Writer) int {
	content, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitFailed
	}
	set, err := file.Decode(content, policy.DefaultSettings(), time.LoadLocation)
	if err != nil {
		for _, line := range file.Lines(err) {
			fmt.Fprintf(stderr, "%s: %s\n", path, line)
		}
		return exitFailed
	}
	for _, w := range set.Warnings() {
		fmt.Fprintf(stdout, "%s: warning: %s\n", path, w)
	}
	fmt.Fprintf(stdout, "%s is good\n", path)
	return exitOK
}
