// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
)

// measured is a manager that keeps what it is to measure.
type measured struct {
	*fake
	info controller.ControllerInfo
}

func (m *measured) Deps() controller.Deps {
	deps := m.fake.Deps()
	deps.Metrics = func(c controller.ControllerInfo) (controller.Instruments, error) {
		m.info = c
		return deaf{}, nil
	}
	return deps
}

// deaf are instruments that measure nothing.
type deaf struct{}

func (deaf) Waited(time.Duration)                    {}
func (deaf) Worked(time.Duration)                    {}
func (deaf) Reconciled(trace.Outcome, time.Duration) {}

func TestQueuedNamesWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &measured{fake: newFake()}
		release := make(chan struct{})
		reconcile := func(_ context.Context, w *Web) (controller.Result, error) {
			switch w.Name {
			case "fails":
				return controller.Result{}, errors.New("no")
			case "later":
				return controller.After(time.Hour), nil
			case "slow":
				<-release
			}
			return controller.Done(), nil
		}
		if err := controller.Add(m, controller.Func[*Web](reconcile)); err != nil {
			t.Fatal(err)
		}
		m.start(t)
		for _, name := range []string{"later", "fails", "slow", "next"} {
			m.create(t, web(name))
			synctest.Wait()
		}
		now := time.Now()
		of := func(name string) trace.Object {
			return trace.Object{Group: "example.com", Kind: "Web", Namespace: "default", Name: name}
		}
		want := trace.Queued{
			Controller: "web", AllReady: 1, AllBackingOff: 1, AllDue: 1,
			Ready:      []trace.Waiting{{Object: of("next"), At: now}},
			BackingOff: []trace.Waiting{{Object: of("fails"), At: now.Add(5 * time.Millisecond), Failures: 1}},
			Due:        []trace.Waiting{{Object: of("later"), At: now.Add(time.Hour)}},
		}
		if diff := cmp.Diff(want, m.info.Queued(9)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		close(release)
		m.end()
	})
}
