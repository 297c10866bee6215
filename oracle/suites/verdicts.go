// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Verdict is what a test is known to do.
type Verdict string

const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip" // it skips itself
	// Either: it passes or fails, by what is faster.
	Either Verdict = "either"
	// NotApplicable: it needs what no client of an API server sees, or what Steer
	// says that it does not have.
	NotApplicable Verdict = "n/a"
)

// Recorded are the verdicts of a suite's tests, with the reason of those that do not pass.
type Recorded map[string]Line

// Line is one test.
type Line struct {
	Verdict Verdict
	Reason  string
}

// folder of the verdicts, in that of module oracle.
const folder = "testdata/suites"

const header = "# Copyright The Steer Authors.\n# SPDX-License-Identifier: Apache-2.0\n#\n" +
	"# What the tests of a suite of Kubernetes do against Steer, with the reason of those that do\n" +
	"# not pass: `go run ./cmd/suites -update` writes the verdicts, and n/a is written by hand.\n\n"

// Read reads the verdicts of a suite; a suite without a file has none.
func (s Suite) Read(oracle string) (Recorded, error) {
	text, err := os.ReadFile(s.file(oracle))
	if os.IsNotExist(err) {
		return Recorded{}, nil
	}
	if err != nil {
		return nil, err
	}
	out := Recorded{}
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verdict, rest, _ := strings.Cut(line, " ")
		name, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		known := slices.Contains([]Verdict{Pass, Fail, Skip, Either, NotApplicable}, Verdict(verdict))
		if !known || name == "" || (Verdict(verdict) == Pass) != (reason == "") {
			return nil, fmt.Errorf("%s: %q: want a verdict (pass, fail, skip, either, n/a), the name of a test, and a reason if it does not pass", s.file(oracle), line)
		}
		out[name] = Line{Verdict(verdict), strings.TrimSpace(reason)}
	}
	return out, nil
}

// Write replaces the file.
func (s Suite) Write(oracle string, r Recorded) error {
	var out strings.Builder
	out.WriteString(header)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&out, "%s\n", strings.TrimSpace(fmt.Sprintf("%-6s %s %s", r[name].Verdict, name, r[name].Reason)))
	}
	return os.WriteFile(s.file(oracle), []byte(out.String()), 0o644)
}

func (s Suite) file(oracle string) string { return filepath.Join(oracle, folder, s.Name+".txt") }

// Counts are how many tests have each verdict.
func (r Recorded) Counts() map[Verdict]int {
	out := map[Verdict]int{}
	for _, line := range r {
		out[line.Verdict]++
	}
	return out
}

// Compare names the tests that do something else than what is recorded: those that passed
// and do not, and those that pass and were not recorded so, which -update records.
func (r Recorded) Compare(did Recorded) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(did)) {
		switch was, is := r[name].Verdict, did[name].Verdict; {
		case was == is, was == Either:
		case was == "":
			out = append(out, fmt.Sprintf("%s is not recorded (%s)", name, is))
		default:
			out = append(out, fmt.Sprintf("%s: %s, it was: %s", name, is, was))
		}
	}
	return out
}

// Merge takes over what tests did. The reason of a test that still does the same stays.
func (r Recorded) Merge(did Recorded) Recorded {
	out := maps.Clone(r)
	for name, line := range did {
		if was := out[name]; was.Verdict != line.Verdict && was.Verdict != Either {
			out[name] = line
		}
	}
	return out
}
