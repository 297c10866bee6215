// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/steer-dev/steer/controlplane/component"
)

func TestStagesAreReportedToHealthChecks(t *testing.T) {
	t.Parallel()
	var s component.Stages
	p := s.Progress()
	want := func(when, booted, announced, running string) {
		t.Helper()
		for what, tt := range map[string]struct {
			run  func() error
			want string
		}{"booted": {p.Booted, booted}, "announced": {p.Announced, announced}, "running": {p.Running, running}} {
			if got := fmt.Sprint(tt.run()); got != tt.want {
				t.Errorf("%s, %s: %s, want %s", when, what, got, tt.want)
			}
		}
	}
	const not, nothing = "not finished", "<nil>"
	want("at first", not, not, not)
	s.Announced.Store(true)
	want("announced", not, nothing, not)
	s.Booted.Store(true)
	want("booted", nothing, nothing, nothing)
	failure := errors.New("broken")
	s.Failure.Store(&failure)
	want("failed", nothing, nothing, "the built-in controllers have stopped: broken")
	if err := p.Running(); !errors.Is(err, failure) {
		t.Errorf("the cause is not in %v", err)
	}
}
