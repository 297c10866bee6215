// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
)

// The type labels of metrics.
const (
	stepAdmit    = "admit"
	stepValidate = "validating"
)

// Mutating is the plugin MutatingAdmissionWebhook.
type Mutating struct {
	resource.MutatesOnly
	caller
	d     *match.Deps
	hooks configurations
}

var _ resource.Admission = (*Mutating)(nil)

// Mutates implements [resource.Mutator]: a patched object takes the place of the one that
// was there.
func (*Mutating) Mutates(*resource.AdmissionRequest) bool { return false }

// Admit implements [resource.Admission].
func (p *Mutating) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	index, err := p.hooks.current()
	if err != nil {
		return err
	}
	candidates := index.Candidates(r)
	if len(candidates) == 0 {
		return nil
	}
	m := &mutation{p: p, q: match.NewRequest(r, p.d), rounds: roundsOf(r)}
	if r.Round.Second() && m.rounds.changedSince(r.Object) {
		m.rounds.require()
	}
	defer func() { m.rounds.keep(r) }()
	for _, h := range candidates {
		if err := m.invoke(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// mutation is one round of calls for one request.
type mutation struct {
	p      *Mutating
	q      *match.Request
	rounds *rounds
	// form is the encoded object in a kind, until it changes.
	form *form
	kind schema.GroupVersionKind
}

// invoke calls a hook if it matches the object as it is now, and applies its patch.
func (m *mutation) invoke(ctx context.Context, h *hook) error {
	as, ok, err := matches(ctx, m.q, h)
	if err != nil || !ok {
		return err
	}
	// A webhook that was not called in the first round is not called in the second.
	if m.q.Round.Second() && !m.rounds.again[h.id] {
		return nil
	}
	if m.form == nil || m.kind != as.Kind {
		if m.form, err = encoded(ctx, m.q, as.Kind); err != nil {
			return err
		}
		m.kind = as.Kind
	}
	begun := time.Now()
	changed := false
	response, err := m.p.call(ctx, h, m.q, as, m.form)
	if err == nil {
		changed, err = m.patch(ctx, h, as, response)
	}
	place := "mutation.webhook.admission.k8s.io/" + m.place(h)
	m.q.NoteJSON(ctx, place, mutationNote{h.configuration, h.name, changed})
	err = m.p.settle(ctx, h, m.q, place, begun, err)
	if changed {
		m.rounds.require()
		m.q.Round.Repeat()
	}
	if h.reinvoke {
		m.rounds.called(h.id)
	}
	return err
}

// place names the call of a hook in audit annotations.
func (m *mutation) place(h *hook) string {
	round := 0
	if m.q.Round.Second() {
		round = 1
	}
	return fmt.Sprintf("round_%d_index_%d", round, h.position)
}

// mutationNote and patchNote are the audit annotations of a call.
type (
	mutationNote struct {
		Configuration string `json:"configuration"`
		Webhook       string `json:"webhook"`
		Mutated       bool   `json:"mutated"`
	}
	patchNote struct {
		Configuration string                       `json:"configuration"`
		Webhook       string                       `json:"webhook"`
		Patch         []map[string]json.RawMessage `json:"patch"`
		PatchType     string                       `json:"patchType"`
	}
)

// notePatch records the patch of a hook, where the objects of requests are recorded.
func (m *mutation) notePatch(ctx context.Context, h *hook, operations []map[string]json.RawMessage) {
	if m.q.RecordsObjects(ctx) {
		m.q.NoteJSON(ctx, "patch.webhook.admission.k8s.io/"+m.place(h), patchNote{h.configuration, h.name, operations, string(admissionv1.PatchTypeJSONPatch)})
	}
}

// rounds is what a request remembers of its calls until the second round.
type rounds struct {
	// before are the webhooks that were called before the last change and want to see
	// later ones; again those that one has made necessary to call again.
	before, again map[string]bool
	// last is the object after the first round.
	last resource.Object
}

type roundsKey struct{}

func roundsOf(r *resource.AdmissionRequest) *rounds {
	if s, ok := r.Round.Value(roundsKey{}).(*rounds); ok {
		return s
	}
	s := &rounds{before: map[string]bool{}, again: map[string]bool{}}
	r.Round.SetValue(roundsKey{}, s)
	return s
}

func (s *rounds) called(id string) { s.before[id] = true }

// require has those called again that have not seen the last change.
func (s *rounds) require() {
	for id := range s.before {
		s.again[id] = true
	}
	clear(s.before)
}

// changedSince reports whether the object has changed since the first round.
func (s *rounds) changedSince(obj resource.Object) bool {
	if len(s.before) == 0 {
		return false
	}
	return !resource.Equal(s.last, obj)
}

// keep remembers the object after the first round if a change would matter.
func (s *rounds) keep(r *resource.AdmissionRequest) {
	if len(s.before) > 0 && !r.Round.Second() && r.Object != nil {
		s.last = r.Object.DeepCopyObject().(resource.Object)
	}
}
