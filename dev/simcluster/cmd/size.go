package main

import (
	"slices"
	"strconv"
	"strings"
)

// resizing is which machines to add and to remove, so that want are there: the lowest numbers that are free, and the
// highest that are there.
func resizing(have []string, want int) (add, remove []string) {
	for n := 1; len(have)+len(add) < want; n++ {
		if name := nodeName(n); !slices.Contains(have, name) {
			add = append(add, name)
		}
	}
	if len(have) > want {
		remove = slices.SortedFunc(slices.Values(have), byNumber)[want:]
	}
	return add, remove
}

func nodeName(n int) string { return "node-" + strconv.Itoa(n) }

func byNumber(a, b string) int { return number(a) - number(b) }

func number(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "node-"))
	return n
}
