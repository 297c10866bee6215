// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// schedule answers when a cronSpec is due, in UTC.
type schedule struct{ cron.Schedule }

// parse reads a cronSpec; its error names the field.
func parse(cronSpec string) (schedule, error) {
	s, err := read(cronSpec)
	if err != nil {
		return s, fmt.Errorf("spec.cronSpec %q: %w", cronSpec, err)
	}
	return s, nil
}

func read(cronSpec string) (schedule, error) {
	s, err := cron.ParseStandard(cronSpec)
	if err != nil {
		return schedule{}, fmt.Errorf("%w; write five fields such as \"*/5 * * * *\"", err)
	}
	return schedule{s}, nil
}

// last returns the newest due time in (since, now]; the zero time when there is
// none. What was missed before it stays missed: a cron that slept does not
// catch up run by run.
func (s schedule) last(since, now time.Time) time.Time {
	var newest time.Time
	// Widening windows before now find the newest due time without walking
	// through all that were missed.
	for window := time.Minute; ; window *= 8 {
		from := now.Add(-window)
		if from.Before(since) {
			from = since
		}
		for t := s.Next(from.UTC()); !t.IsZero() && !t.After(now); t = s.Next(t) {
			newest = t
		}
		if !newest.IsZero() || from.Equal(since) {
			return newest
		}
	}
}
