// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"bytes"
	"sync"
	"time"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

const (
	// lastUsed is the label of a Secret with the day on which its token was last used.
	lastUsed = "kubernetes.io/legacy-token-last-used"
	// mostUses are the Secrets that wait for their label. Further ones get it at a later
	// use of their token.
	mostUses = 1000
)

// Uses is a controller that notes on Secrets on which day their tokens were last used, once a
// day. Authentication tells it and waits for nothing: a token is good whether its use can
// be noted or not. It runs on each of several servers, because each authenticates.
type Uses struct {
	mu     sync.Mutex
	due    map[storage.Key]string // the day by Secret, until that is reported
	signal func()
}

var (
	_ step.Controller = (*Uses)(nil)
	_ step.Signaller  = (*Uses)(nil)
)

// NewUses returns the controller.
func NewUses() *Uses { return &Uses{due: map[storage.Key]string{}, signal: func() {}} }

// Component returns the part of the controller.
func (u *Uses) Component() component.Component {
	out := component.ServerController(u)
	out.OnEachServer = true
	return out
}

// note has the Secret of a token labelled that is used now. It is safe for concurrent use; a
// nil *Uses notes nothing.
func (u *Uses) note(view storage.View, s *claims, now time.Time) {
	if u == nil {
		return
	}
	key, today := storage.Key{Bucket: "secrets", Name: s.LegacyNamespace + "/" + s.LegacySecret}, now.UTC().Format(time.DateOnly)
	rec := view.Get(key)
	if rec == nil || bytes.Contains(rec.Value, []byte(`"`+lastUsed+`":"`+today+`"`)) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.due[key]; known || len(u.due) >= mostUses {
		return
	}
	u.due[key] = today
	u.signal()
}

// Name implements [step.Controller].
func (u *Uses) Name() string { return "legacy-token-uses" }

// OnSignal implements [step.Signaller].
func (u *Uses) OnSignal(signal func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.signal = signal
}

// Reset implements [step.Controller].
func (u *Uses) Reset(storage.View) {}

// Filter implements [step.Controller]: nothing is due because of a write.
func (u *Uses) Filter(storage.Event) bool { return false }

// Handle implements [step.Controller].
func (u *Uses) Handle(storage.Event) {}

// Sync implements [step.Controller].
func (u *Uses) Sync(view storage.View, _ time.Time) []step.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	due := step.KeySet{}
	for key := range u.due {
		due.Add(key)
	}
	var out []step.Request
	for _, key := range due.Sorted() {
		if view.Get(key) == nil {
			delete(u.due, key)
			continue
		}
		patch := []byte(`{"metadata":{"labels":{"` + lastUsed + `":"` + u.due[key] + `"}}}`)
		out = append(out, step.Patch(step.APIServer, secretResource().Object(key), patch, step.Subject{Key: key}))
	}
	return out
}

// Done implements [step.Controller]. What failed is noted at the next use.
func (u *Uses) Done(r step.Request, _ error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.due, r.Subject.Key)
}
