// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"path/filepath"

	"github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/scaffold/project"
)

// servePage serves the page of the operator, with what it did at earlier starts, until the
// returned function is called. It outlives the operators that are started one after the other.
func (l *loop) servePage(ctx context.Context) (url string, stop func(), err error) {
	records := filepath.Join(l.Dir, filepath.FromSlash(project.RecordsDir))
	var now func() dashboard.Now // without a screen nothing follows the operator
	if l.live != nil {
		now = func() (n dashboard.Now) {
			n.Running, n.Queued = l.live.feed.Now()
			return n
		}
	}
	page := dashboard.New(dashboard.Options{
		Title: l.project.Name, Source: explain.ProjectSource(records, now), Objects: explain.NewPlane(l.config, records),
	})
	local, err := page.Listen("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = local.Run(serving) // a listener that breaks shows in the browser
	}()
	return local.URL(), func() {
		cancel()
		<-ended
	}, nil
}
