// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab

import (
	"testing"
	"time"
)

func TestScheduleFindsTheNewestDueTime(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15:04:05", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, c := range map[string]struct {
		spec, since, now, want string
	}{
		"nothing due":               {"0 * * * *", "2026-01-01 10:00:00", "2026-01-01 10:59:59", ""},
		"due to the second":         {"0 * * * *", "2026-01-01 10:00:00", "2026-01-01 11:00:00", "2026-01-01 11:00:00"},
		"since is not due again":    {"0 * * * *", "2026-01-01 11:00:00", "2026-01-01 11:00:00", ""},
		"the newest of many missed": {"*/5 * * * *", "2020-01-01 00:00:00", "2026-01-01 10:07:00", "2026-01-01 10:05:00"},
		"rare and long ago":         {"0 0 29 2 *", "2023-01-01 00:00:00", "2026-01-01 00:00:00", "2024-02-29 00:00:00"},
		"the documented sample":     {"* * * * */5", "2026-01-01 00:00:00", "2026-01-01 23:59:00", ""}, // a Thursday
		"the sample on its day":     {"* * * * */5", "2026-01-01 00:00:00", "2026-01-02 00:00:30", "2026-01-02 00:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			var want time.Time
			if c.want != "" {
				want = at(c.want)
			}
			if got := s.last(at(c.since), at(c.now)); !got.Equal(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestScheduleRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"", "every day", "* * * *", "61 * * * *"} {
		if _, err := parse(spec); err == nil {
			t.Errorf("%q was accepted", spec)
		}
	}
}
