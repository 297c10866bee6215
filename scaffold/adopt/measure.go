// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/steer-dev/steer/internal/children"
)

// Times are how long targets of a Makefile take.
type Times struct{ Targets []TargetTimes }

// TargetTimes are those of one target, with warm caches.
type TargetTimes struct {
	Target        string
	Before, After time.Duration
}

// Text is a table of the times.
func (t *Times) Text() string {
	var out strings.Builder
	out.WriteString("\nMeasured in a copy, with warm caches:\n")
	for _, m := range t.Targets {
		fmt.Fprintf(&out, "  make %-10s %8.2f s before, %6.2f s after: saves %.2f s, %.1f times as fast\n",
			m.Target, m.Before.Seconds(), m.After.Seconds(), (m.Before - m.After).Seconds(), m.Before.Seconds()/m.After.Seconds())
	}
	return out.String()
}

// Measure runs the targets that generate and test in a copy of a project, before and
// after it is adopted, each once to fill caches and once for its time. It calls progress
// before each run. The project is not changed.
func Measure(ctx context.Context, o Options, progress func(step string)) (_ *Times, err error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	text, err := readMakefile(filepath.Join(dir, makefileName))
	if err != nil {
		return nil, err
	}
	if m, err := o.makefile(dir, text); err != nil {
		return nil, err
	} else if err := m.check(dir); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp("", "steer-adopt-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	o.Dir = filepath.Join(root, filepath.Base(dir))
	if err := os.CopyFS(o.Dir, os.DirFS(dir)); err != nil {
		return nil, fmt.Errorf("copy the project: %w", err)
	}
	if text, err = restoreMakefile(text); err != nil { // also of one that is adopted
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, makefileName), []byte(text), 0o644); err != nil {
		return nil, err
	}
	t := &Times{}
	for _, target := range []string{"manifests", "generate", "test"} {
		if strings.Contains("\n"+text, "\n"+target+":") {
			t.Targets = append(t.Targets, TargetTimes{Target: target})
		}
	}
	for _, adopted := range []bool{false, true} {
		if adopted {
			if _, err := Adopt(o); err != nil {
				return nil, err
			}
		}
		for i := range t.Targets {
			took := &t.Targets[i].Before
			if adopted {
				took = &t.Targets[i].After
			}
			if *took, err = measure(ctx, o.Dir, t.Targets[i].Target, adopted, progress); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func measure(ctx context.Context, dir, target string, adopted bool, progress func(string)) (took time.Duration, err error) {
	for _, what := range []string{"fill caches", "measure"} {
		when := "before"
		if adopted {
			when = "after"
		}
		progress(fmt.Sprintf("%s: make %s, %s", what, target, when))
		var out bytes.Buffer
		cmd := exec.Command("make", target)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		// Results of tests that are kept would take the place of the suite.
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -count=1"))
		start := time.Now()
		if err := children.Run(ctx, cmd); err != nil {
			return 0, fmt.Errorf("make %s, %s: %w: %s", target, when, err, lastLines(out.Bytes()))
		}
		took = time.Since(start)
	}
	return took, nil
}

// lastLines is the end of what a command printed, in one line.
func lastLines(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte("; ")))
}
