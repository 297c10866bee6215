// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"strings"
)

const (
	// around is how many unchanged lines a diff shows around a change.
	around = 3
	// tooLong is the product of line counts above which changed regions are shown
	// as replaced as a whole.
	tooLong = 4 << 20
)

// Diff shows the change in unified format.
func (c Change) Diff() string {
	before, after := c.Path, c.Path
	if c.Before == nil {
		before = "/dev/null"
	}
	if c.After == nil {
		after = "/dev/null"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", before, after)
	edits := diff(lines(c.Before), lines(c.After))
	for start := 0; start < len(edits); {
		if edits[start].kind == ' ' {
			start++
			continue
		}
		end := hunkEnd(edits, start)
		writeHunk(&out, edits, max(0, start-around), min(len(edits), end+around))
		start = end
	}
	return out.String()
}

// edit is a line that is kept (' '), removed ('-') or added ('+').
type edit struct {
	kind byte
	text string
}

// hunkEnd returns the end of the changes that are close to the one at start.
func hunkEnd(edits []edit, start int) int {
	end := start
	for i := start; i < len(edits) && i-end <= 2*around; i++ {
		if edits[i].kind != ' ' {
			end = i + 1
		}
	}
	return end
}

func writeHunk(out *strings.Builder, edits []edit, from, to int) {
	count := func(edits []edit, except byte) int {
		n := 0
		for _, e := range edits {
			if e.kind != except {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n",
		count(edits[:from], '+')+1, count(edits[from:to], '+'),
		count(edits[:from], '-')+1, count(edits[from:to], '-'))
	for _, e := range edits[from:to] {
		out.WriteByte(e.kind)
		out.WriteString(e.text)
		out.WriteByte('\n')
	}
}

func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// diff finds the edits from a to b by their longest common subsequence, after
// setting aside what begins and ends alike.
func diff(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for _, line := range a[len(a)-n:] {
		tail = append(tail, edit{' ', line})
	}
	return append(append(head, subsequence(a[:len(a)-n], b[:len(b)-n])...), tail...)
}

func subsequence(a, b []string) []edit {
	var edits []edit
	if len(a)*len(b) > tooLong {
		for _, line := range a {
			edits = append(edits, edit{'-', line})
		}
		for _, line := range b {
			edits = append(edits, edit{'+', line})
		}
		return edits
	}
	// length[i][j] is that of the longest subsequence of a[i:] and b[j:].
	length := make([][]int32, len(a)+1)
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && length[i+1][j] >= length[i][j+1]:
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}
