// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// PluginName is that of the admission plugin.
const PluginName = "ResourceQuota"

// bucket holds the quotas.
const bucket = "resourcequotas"

// Admission refuses what would exceed a quota, and charges the quotas for what
// it admits. It has to be the last of a chain: what comes after it and refuses
// would leave charges of objects that do not exist.
type Admission struct {
	resource.ValidatesOnly
	store  storage.Viewer
	send   step.Sender
	ledger *Ledger
	// limited is what needs a quota.
	limited []Limited

	// turns order the requests of a namespace that met one another; two namespaces
	// share one at times.
	seed  maphash.Seed
	turns [64]chan struct{}
	// any reports whether there are quotas in any namespace.
	any *derived.Value[bool]
}

var _ resource.Admission = (*Admission)(nil)

// NewAdmission returns the admission for the quotas in a store. It writes their
// status through send, and notes its charges for a controller in the ledger. What is
// limited is refused where no quota is about it.
func NewAdmission(store storage.Viewer, send step.Sender, ledger *Ledger, limited []Limited) *Admission {
	a := &Admission{store: store, send: send, ledger: ledger, limited: limited, seed: maphash.MakeSeed()}
	a.any = derived.New(store, func(view storage.View, _ bool) (bool, error) { return view.Count(bucket, "", "") > 0, nil }, bucket)
	for i := range a.turns {
		a.turns[i] = make(chan struct{}, 1)
	}
	return a
}

// Validate implements [resource.Admission].
func (a *Admission) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	if !charged(r) {
		return nil
	}
	some, err := a.limits(r.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !some && len(a.limited) == 0 {
		return nil
	}
	m := meterOf(r.Resource.GroupResource())
	if m == nil {
		return nil
	}
	return a.charge(ctx, r, m)
}

// limits reports whether a namespace has quotas. While there are none at all, it takes
// no view.
func (a *Admission) limits(namespace string) (bool, error) {
	if some, err := a.any.Get(); err != nil || !some {
		return false, err
	}
	view := a.store.Latest()
	return view.Count(bucket, namespace+"/", "") > 0, nil
}

// charged reports whether a request may take up more than before.
func charged(r *resource.AdmissionRequest) bool {
	if r.Namespace == "" || r.Object == nil || r.Resource.Backend != nil {
		return false
	}
	switch r.Operation {
	case resource.Create:
		return r.Subresource == ""
	case resource.Update:
	default:
		return false
	}
	switch o := r.Object.(type) {
	case *corev1.Service, *corev1.PersistentVolumeClaim:
		return r.Subresource == ""
	case *corev1.Pod:
		switch r.Subresource {
		case "resize":
			return true
		case "": // it moves to the quotas of another scope
			old, ok := r.Old.(*corev1.Pod)
			return ok && terminates(old) != terminates(o)
		}
	}
	return false
}

const (
	// attempts at writing the status of a quota while no other request changes it.
	attempts = 3
	// turn is how long a request waits for others that charge the same quotas. They
	// may need as long as an admission webhook, which may be waiting for this request.
	turn = 50 * time.Millisecond
)

// await waits for the turn of a request that has met another one, for a while. Nothing
// depends on it: the revision of a quota decides which of two requests has charged it.
func (a *Admission) await(ctx context.Context, namespace string) (end func()) {
	turns := a.turns[maphash.String(a.seed, namespace)%uint64(len(a.turns))]
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return func() { <-turns }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// charge checks the quotas of a namespace and writes what they are charged. It holds no
// lock meanwhile: where another request was first, it looks again.
func (a *Admission) charge(ctx context.Context, r *resource.AdmissionRequest, m *meter) error {
	done := map[string]bool{} // by name of the quota
	end := func() {}
	defer func() { end() }()
	noted := false
	var failed string // the version of a quota that could not be written last
	for failures := 0; ; {
		view := a.store.Latest()
		charges, err := a.due(view, r, m, done)
		if err != nil {
			return err
		}
		object := storage.Key{Bucket: r.Resource.Storage.Bucket, Name: r.Namespace + "/" + r.Object.GetName()}
		taken := r.Operation == resource.Create && view.Get(object) != nil // it is going to be refused as existing
		if r.DryRun || taken {
			return nil
		}
		if len(charges) > 0 && !noted {
			noted = true
			r.Finish.Add(a.ledger.begin(object, time.Now()))
		}
		missed, err := a.writeAll(ctx, charges, object, view.Revision(), done)
		if err == nil {
			return nil
		}
		if version := missed.Name + "/" + missed.ResourceVersion; version != failed {
			failed, failures = version, 0
		}
		if failures++; failures == attempts || ctx.Err() != nil {
			return apierrors.NewInternalError(fmt.Errorf("charge the quotas of namespace %s: %w", r.Namespace, err))
		}
		end()
		end = a.await(ctx, r.Namespace)
	}
}

// writeAll writes charges and notes those that it has written in done. It returns the first quota
// that could not be written.
func (a *Admission) writeAll(ctx context.Context, charges []dueCharge, object storage.Key, at storage.Revision, done map[string]bool) (*corev1.ResourceQuota, error) {
	for _, c := range charges {
		if err := a.write(ctx, c, object, at); err != nil {
			return c.quota, err
		}
		done[c.quota.Name] = true
	}
	return nil, nil // no quota, as none is missed
}

// dueCharge is a quota, with the status that it is going to have, and what that
// adds to the one it has.
type dueCharge struct {
	quota   *corev1.ResourceQuota
	stands  storage.Revision // of the quota without the charge
	amounts corev1.ResourceList
}

// due returns the charges for a request to quotas that were not charged yet, or
// why it is refused.
func (a *Admission) due(view storage.View, r *resource.AdmissionRequest, m *meter, done map[string]bool) ([]dueCharge, error) {
	in := setting{now: time.Now(), classes: m.classes(view)}
	uses := m.read(r.Object, in)
	need := needsOf(a.limited, r.Resource.GroupResource(), r.Object, uses)
	quotas, err := about(view, r, m, in, &need, done)
	if err != nil {
		return nil, err
	}
	used := corev1.ResourceList{} // by what is replaced
	if r.Old != nil {
		used = m.read(r.Old, in)
	}
	grows := len(quotas) == 0 && len(increase(uses, used)) > 0
	for i := range quotas {
		c := &quotas[i]
		if c.amounts = increase(uses, nil); r.Old != nil && inScope(&c.quota.Spec, r.Old) {
			c.amounts = increase(uses, used)
		}
		grows = grows || len(c.amounts) > 0
	}
	if err := need.unmet(r); err != nil && grows {
		return nil, err
	}
	var out []dueCharge
	for _, c := range quotas {
		if c.amounts = only(c.amounts, c.quota.Status.Hard); len(c.amounts) == 0 {
			continue
		}
		if err := c.add(r); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// about returns the quotas that are about a request, without those that are done, and takes what
// they bound away from what it needs.
func about(view storage.View, r *resource.AdmissionRequest, m *meter, in setting, need *needs, done map[string]bool) ([]dueCharge, error) {
	var out []dueCharge
	for rec := range view.Ascend(bucket, r.Namespace+"/", "") {
		q := &corev1.ResourceQuota{}
		if err := json.Unmarshal(rec.Value, q); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("read the quota %s: %w", rec.Key.Name, err))
		}
		need.selected(&q.Spec, r.Object)
		counted := m.counted(q.Status.Hard, in.classes)
		if len(counted) == 0 || !inScope(&q.Spec, r.Object) {
			continue
		}
		need.names.Delete(counted...)
		if done[q.Name] {
			continue
		}
		if p, isPod := r.Object.(*corev1.Pod); isPod {
			if what := missing(p, counted); what != "" {
				return nil, admission.Forbidden(r, "failed quota: %s: must specify %s", q.Name, what)
			}
		}
		for _, name := range counted {
			if _, known := q.Status.Used[name]; !known {
				return nil, admission.Forbidden(r, "status unknown for quota: %s, resources: %s", q.Name, textOf(counted))
			}
		}
		out = append(out, dueCharge{quota: q, stands: rec.Modified})
	}
	return out, nil
}

// add adds the amounts to the status of the quota, or returns why the request is refused.
func (c *dueCharge) add(r *resource.AdmissionRequest) error {
	q := c.quota
	used := q.Status.Used.DeepCopy()
	admission.Add(used, c.amounts)
	exceeded := corev1.ResourceList{}
	for name := range c.amounts {
		if now, most := used[name], q.Status.Hard[name]; now.Cmp(most) > 0 {
			exceeded[name] = most
		}
	}
	if len(exceeded) > 0 {
		return admission.Forbidden(r, "exceeded quota: %s, requested: %s, used: %s, limited: %s",
			q.Name, text(only(c.amounts, exceeded)), text(only(q.Status.Used, exceeded)), text(exceeded))
	}
	q.Status.Used = used
	return nil
}

// write stores the status of a quota as it was computed, unless the quota
// was written since, and notes the charge for an object that is going to be stored after
// a revision. The controller counts the charge from the moment on at which it is written:
// if it counted one that loses, the quota would be exceeded by what is not there.
func (a *Admission) write(ctx context.Context, c dueCharge, object storage.Key, at storage.Revision) error {
	key := storage.Key{Bucket: bucket, Name: c.quota.Namespace + "/" + c.quota.Name}
	c.quota.TypeMeta.APIVersion, c.quota.TypeMeta.Kind = "v1", "ResourceQuota"
	body, err := json.Marshal(c.quota)
	if err != nil {
		return err
	}
	defer a.ledger.end(a.ledger.attempt(key, c.stands))
	err = a.send(ctx, step.Put(step.APIServer, resourceOf().Object(key)+"/status", body, step.Subject{Key: key}))
	if !apierrors.IsConflict(err) { // after any other error it may have been written
		a.ledger.note(object, key, c.amounts, at, time.Now())
	}
	return err
}

// resourceOf is how quotas are called.
func resourceOf() step.Resource {
	return step.Resource{Bucket: bucket, Version: "v1", Plural: bucket, Kind: "ResourceQuota", Namespaced: true}
}
