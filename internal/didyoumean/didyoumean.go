// Package didyoumean finds the name that somebody who wrote another one probably meant.
package didyoumean

import (
	"slices"
	"strings"
)

// longest bounds the work: the distance takes the product of both lengths, and no name of ours is longer.
const longest = 40

// Nearest returns the candidate that is most like name, or "" if none is close enough to be a slip. Letter case does
// not count, a name that was cut short does.
func Nearest(name string, candidates []string) string {
	if len(name) > longest {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", max(1, len(name)/3)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if len(name) > 4 && strings.HasPrefix(c, name) {
			return c
		}
		if d := distance(name, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is the number of bytes to insert, remove, change or swap with the next one to make a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
