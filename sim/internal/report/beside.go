// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

// maxCompared bounds how many lines after the first difference are compared: the work is
// its square.
const maxCompared = 300

// row is one line of what happened.
type row struct {
	mark byte // ' ', '-', '+' or '!'
	text string
}

// beside returns the lines of a run and of the reference as one list, each line marked:
// what is a little before and after faults and differences. The line of a fault may say
// more than that of the reference, after a colon.
func beside(reference, lines []string, faults []int) []string {
	alike := func(i, j int) bool {
		return reference[i] == lines[j] || slices.Contains(faults, j) && strings.HasPrefix(lines[j], reference[i]+": ")
	}
	same := 0
	for same < min(len(reference), len(lines)) && alike(same, same) {
		same++
	}
	var rows []row
	for i := range same {
		rows = append(rows, row{' ', lines[i]})
	}
	rows = append(rows, differences(clip(reference[same:]), clip(lines[same:]), func(i, j int) bool { return alike(same+i, same+j) })...)
	mark(rows, faults)
	out := folded(rows)
	for _, cut := range []struct {
		n    int
		what string
	}{{len(reference) - same - maxCompared, "the reference"}, {len(lines) - same - maxCompared, "this run"}} {
		if cut.n > 0 {
			out = append(out, fmt.Sprintf("  (%d further lines of %s are not compared)", cut.n, cut.what))
		}
	}
	return out
}

func clip(lines []string) []string { return lines[:min(len(lines), maxCompared)] }

// folded writes rows, and counts what is not needed of many that have one mark: of those
// that are as in the reference what is far from a difference, of others all but the first.
func folded(rows []row) (out []string) {
	for at := 0; at < len(rows); {
		mark, end := rows[at].mark, at
		for end < len(rows) && rows[end].mark == mark {
			end++
		}
		head, tail, what := 2*before, 0, "more"
		if mark == ' ' {
			head, tail, what = before, before, "as in the reference"
			if at == 0 {
				head = 0
			}
			if end == len(rows) {
				tail = 0
			}
		}
		for i := at; i < end; i++ {
			if left := end - at - head - tail; left > 1 && i == at+head {
				out = append(out, fmt.Sprintf("%c (%d lines %s)", mark, left, what))
				i = end - tail - 1
				continue
			}
			out = append(out, string(mark)+" "+rows[i].text)
		}
		at = end
	}
	return out
}

// mark sets the marks of faults, which are indexes of the run's lines.
func mark(rows []row, faults []int) {
	at := 0
	for i := range rows {
		if rows[i].mark == '-' {
			continue
		}
		if slices.Contains(faults, at) {
			rows[i].mark = '!'
		}
		at++
	}
}

// differences merges two lists by their longest common subsequence; alike compares two of
// their elements.
func differences(a, b []string, alike func(i, j int) bool) []row {
	length := make([][]int, len(a)+1) // of the subsequence of a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if alike(i, j) {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []row
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && alike(i, j):
			out = append(out, row{' ', b[j]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && length[i+1][j] >= length[i][j+1]:
			out = append(out, row{'-', a[i]})
			i++
		default:
			out = append(out, row{'+', b[j]})
			j++
		}
	}
	return out
}
