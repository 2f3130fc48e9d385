package sample

import "testing"

func TestGrown(t *testing.T) {
	if n := Grown([]int{1, 40}); n != 1 {
		t.Error(n)
	}
}
