// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// WriteBenchstat writes every value in the format of Go's benchmarks, with the side
// as a key, so that
//
//	benchstat -col /side new.txt
//	benchstat -filter /side:steer old.txt new.txt
//
// compare the sides, or two runs.
func (r *Report) WriteBenchstat(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "goos: %s\ngoarch: %s\npkg: github.com/steer-dev/steer/bench\n", r.Machine["os"], r.Machine["arch"])
	for _, m := range r.Metrics {
		name := "Benchmark" + strings.ToUpper(m.Group[:1]) + m.Group[1:] + "/" + benchName.Replace(m.Name)
		for _, side := range []struct {
			name   Side
			values []float64
		}{{Steer, m.Steer}, {Upstream, m.Upstream}} {
			for _, value := range side.values {
				fmt.Fprintf(&out, "%s/side=%s 1 %g %s\n", name, side.name, value, cmp.Or(m.Unit, "count"))
			}
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// benchName makes a metric's name a part of a benchmark's: without spaces, and
// without what parts names and keys.
var benchName = strings.NewReplacer(" ", "_", "/", "-", "=", "-")
