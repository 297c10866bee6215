// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"strings"
)

// culprits are goroutines of a bubble in the stacks of all: those that keep its time from
// going on, since they run or wait for something that the bubble cannot see, or, with
// blocked, those that wait within it. Those that are in code of Steer come last: they mostly
// wait for the others.
func culprits(stacks string, blocked bool) string {
	const most = 3
	var all []string
	for g := range strings.SplitSeq(stacks, "\n\n") {
		header, _, _ := strings.Cut(g, "\n")
		if strings.Contains(header, "synctest bubble") && !strings.Contains(header, "[synctest.") && strings.Contains(header, "(durable)") == blocked {
			all = append(all, short(g))
		}
	}
	if len(all) == 0 {
		return "no goroutine of the bubble"
	}
	slices.SortStableFunc(all, func(a, b string) int { return inSteer(a) - inSteer(b) })
	return strings.Join(all[:min(len(all), most)], "\n\n")
}

// short leaves frames of the standard library out of the stack of a goroutine, but for the
// first: what blocks is seldom where the mistake is.
func short(stack string) string {
	const most = 4 // frames
	lines := strings.Split(strings.TrimRight(stack, "\n"), "\n")
	out, frames := slices.Clone(lines[:min(len(lines), 3)]), 0
	for i := 3; i+1 < len(lines) && frames < most; i += 2 {
		if !standard(lines[i]) {
			out = append(out, lines[i], lines[i+1])
			frames++
		}
	}
	return strings.Join(out, "\n")
}

// standard reports whether a frame is of the standard library: the first part of its import
// path has no dot. Modules whose path has none either are taken for it.
func standard(frame string) bool {
	path, _, _ := strings.Cut(strings.TrimPrefix(frame, "created by "), "(")
	first, _, deeper := strings.Cut(path, "/")
	if !deeper {
		first, _, _ = strings.Cut(first, ".") // package.Function
	}
	return !strings.Contains(first, ".")
}

// inSteer is 1 for a goroutine whose first frame beside the standard library is in a package
// of Steer that operators run on, 0 for others.
func inSteer(stack string) int {
	const module = "github.com/steer-dev/steer/"
	lines := strings.Split(stack, "\n")
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "\t") || standard(line) {
			continue
		}
		rest, ours := strings.CutPrefix(line, module)
		folder, _, _ := strings.Cut(rest, "/")
		folder, _, _ = strings.Cut(folder, ".")
		if ours && slices.Contains([]string{"apiserver", "cache", "client", "controller", "controlplane", "internal", "manager", "queue", "steertest", "storage", "trace", "webhook"}, folder) {
			return 1
		}
		return 0
	}
	return 1
}
