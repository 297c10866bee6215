// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// interval of indexes of a Job, both ends included.
type interval struct{ first, last int }

// parseInterval reads a part of a list such as 1,3-5; completions is one more
// than the largest index there may be.
func parseInterval(text string, completions int32) (interval, error) {
	limits := strings.Split(text, "-")
	if len(limits) > 2 {
		return interval{}, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", text)
	}
	var ends [2]int
	for i, text := range limits {
		n, err := strconv.Atoi(text)
		if err != nil {
			return interval{}, fmt.Errorf("cannot convert string to integer for index: %q", text)
		}
		if n >= int(completions) {
			return interval{}, fmt.Errorf("too large index: %q", text)
		}
		ends[i] = n
	}
	if len(limits) == 1 {
		ends[1] = ends[0]
	} else if ends[0] >= ends[1] {
		return interval{}, outOfOrder(ends[0], ends[1])
	}
	return interval{ends[0], ends[1]}, nil
}

func outOfOrder(previous, current int) error {
	return fmt.Errorf("non-increasing order, previous: %d, current: %d", previous, current)
}

// countIndexes returns how many indexes a list such as 1,3-5 has.
func countIndexes(list string, completions int32) (int32, error) {
	if list == "" {
		return 0, nil
	}
	last, total := -1, 0
	for part := range strings.SplitSeq(list, ",") {
		in, err := parseInterval(part, completions)
		if err != nil {
			return 0, err
		}
		if last >= in.first {
			return 0, outOfOrder(last, in.first)
		}
		total, last = total+in.last-in.first+1, in.last
	}
	return int32(total), nil // not more than there are completions
}

// commonIndex returns an index that is in both lists. Parts that are wrong, which
// is said elsewhere, are passed over.
func commonIndex(one, other string, completions int32) (int, bool) {
	a, b := intervals(one, completions), intervals(other, completions)
	for len(a) > 0 && len(b) > 0 {
		if a[0].first <= b[0].last && b[0].first <= a[0].last {
			return max(a[0].first, b[0].first), true
		}
		if a[0].first <= b[0].first {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return 0, false
}

func intervals(list string, completions int32) []interval {
	var out []interval
	for part := range strings.SplitSeq(list, ",") {
		if in, err := parseInterval(part, completions); err == nil {
			out = append(out, in)
		}
	}
	return out
}
