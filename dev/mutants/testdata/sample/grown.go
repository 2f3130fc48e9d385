// Package sample has a test that forgets a boundary.
package sample

const grown = 18

// Grown counts the ages of those that are grown up.
func Grown(ages []int) (n int) {
	for i := 0; i < len(ages); i++ {
		if ages[i] >= grown {
			n++
		}
	}
	return n
}
