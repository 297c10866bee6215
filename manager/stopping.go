// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// firstReport is when an end that takes its time is first told, soon enough for those who
// kill a process that does not end. Each time after that is twice the one before.
const firstReport = time.Second

// tellWaiting logs what keeps the groups from ending, until the returned function is
// called.
func (m *Manager) tellWaiting(groups ...*group) (stop func()) {
	var telling sync.WaitGroup
	done := make(chan struct{})
	telling.Go(func() {
		for after := firstReport; ; after *= 2 {
			timer := time.NewTimer(after)
			select {
			case <-done:
				timer.Stop()
				return
			case <-timer.C:
			}
			var left []string
			for _, g := range groups {
				left = append(left, g.left()...)
			}
			m.opts.Log.Warn("The operator is told to end and waits", "for", strings.Join(slices.Compact(left), ", "), "running", m.running())
		}
	})
	return func() {
		close(done)
		telling.Wait()
	}
}

// running are the reconciles that have not ended: what, how long, and where.
func (m *Manager) running() []string {
	var all []string
	for _, r := range m.records.Recorder.Running() {
		all = append(all, r.String())
	}
	return all
}

// stuck adds to the error of an end that took too long which reconciles have not ended.
func (m *Manager) stuck(err error) error {
	if running := m.running(); err != nil && len(running) > 0 {
		return fmt.Errorf("%w; running: %s", err, strings.Join(running, "; "))
	}
	return err
}
