// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"strconv"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// How long requests stay.
const (
	undecidedLife = 24 * time.Hour
	decidedLife   = time.Hour
	podLife       = 15 * time.Minute
)

// Cleaner is a controller that deletes requests of one kind.
type Cleaner struct {
	cleaned
	// deadlines are when requests are deleted; next is the first of them.
	deadlines map[storage.Key]deadline
	next      time.Time
}

// cleaned is the kind that a cleaner deletes requests of.
type cleaned struct {
	controller string
	user       string
	resource   step.Resource
	// end returns when a request is deleted; the zero time: not unless it changes.
	end func(*storage.Record) time.Time
}

// deadline is when a version of a request is deleted.
type deadline struct {
	at       time.Time
	revision storage.Revision
}

var (
	_ step.Controller = (*Cleaner)(nil)
	_ step.Waker      = (*Cleaner)(nil)
)

// NewCleaner returns the cleaner of CertificateSigningRequests, which has observed nothing. It
// deletes them an hour after they were denied, failed, or were approved and signed; when their
// certificate has expired; and a day after their creation if they are pending.
func NewCleaner() *Cleaner {
	return newCleaner(cleaned{"certificatesigningrequest-cleaner-controller", user, requests(), func(rec *storage.Record) time.Time {
		if r := read(rec); r != nil && r.DeletionTimestamp == nil {
			return end(r)
		}
		return time.Time{}
	}})
}

// NewPodCleaner returns the cleaner of PodCertificateRequests, which has observed nothing. It
// deletes them a quarter of an hour after their creation.
func NewPodCleaner() *Cleaner {
	return newCleaner(cleaned{"podcertificaterequest-cleaner-controller", step.KubeSystem + "podcertificaterequestcleaner", forPods(), func(rec *storage.Record) time.Time {
		r := &metav1.PartialObjectMetadata{}
		if json.Unmarshal(rec.Value, r) != nil || r.DeletionTimestamp != nil {
			return time.Time{}
		}
		return r.CreationTimestamp.Add(podLife)
	}})
}

func newCleaner(of cleaned) *Cleaner {
	return &Cleaner{cleaned: of, deadlines: map[storage.Key]deadline{}}
}

// forPods is the resource of PodCertificateRequests.
func forPods() step.Resource {
	return step.Resource{
		Bucket: certificatesv1.GroupName + "/" + podPlural, Group: certificatesv1.GroupName, Version: "v1", Plural: podPlural,
		Kind: "PodCertificateRequest", Namespaced: true,
	}
}

// Name implements [step.Controller].
func (c *Cleaner) Name() string { return c.controller }

// Reset implements [step.Controller].
func (c *Cleaner) Reset(view storage.View) {
	*c = *newCleaner(c.cleaned)
	for rec := range view.Ascend(c.resource.Bucket, "", "") {
		c.see(rec)
	}
}

// Filter implements [step.Controller].
func (c *Cleaner) Filter(e storage.Event) bool { return e.Record.Key.Bucket == c.resource.Bucket }

// Handle implements [step.Controller].
func (c *Cleaner) Handle(e storage.Event) {
	if e.Deleted {
		c.forget(e.Record.Key)
		return
	}
	c.see(e.Record)
}

func (c *Cleaner) see(rec *storage.Record) {
	c.forget(rec.Key)
	if at := c.end(rec); !at.IsZero() {
		c.deadlines[rec.Key] = deadline{at, rec.Modified}
		if c.next.IsZero() || at.Before(c.next) {
			c.next = at
		}
	}
}

// forget removes a request. There are few, so the first deadline is computed
// again.
func (c *Cleaner) forget(key storage.Key) {
	old, known := c.deadlines[key]
	delete(c.deadlines, key)
	if known && old.at.Equal(c.next) {
		c.findNext()
	}
}

func (c *Cleaner) findNext() {
	c.next = time.Time{}
	for _, d := range c.deadlines {
		if c.next.IsZero() || d.at.Before(c.next) {
			c.next = d.at
		}
	}
}

// end returns when a CertificateSigningRequest is deleted; the zero time: not unless it
// changes.
func end(r request) time.Time {
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		if decided := condition(r, t); decided != nil {
			return decided.LastUpdateTime.Add(decidedLife)
		}
	}
	approved := condition(r, certificatesv1.CertificateApproved)
	switch {
	case approved == nil && len(r.Status.Conditions) == 0:
		return r.CreationTimestamp.Add(undecidedLife)
	case approved == nil || len(r.Status.Certificate) == 0:
		return time.Time{}
	}
	at := approved.LastUpdateTime.Add(decidedLife)
	if block, _ := pem.Decode(r.Status.Certificate); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && cert.NotAfter.Before(at) {
			return cert.NotAfter
		}
	}
	return at
}

// Sync implements [step.Controller].
func (c *Cleaner) Sync(_ storage.View, now time.Time) []step.Request {
	if c.next.IsZero() || c.next.After(now) {
		return nil
	}
	var out []step.Request
	for _, key := range slices.SortedFunc(maps.Keys(c.deadlines), step.CompareKeys) {
		d := c.deadlines[key]
		if d.at.After(now) {
			continue
		}
		body := `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":` +
			strconv.Quote(strconv.FormatInt(int64(d.revision), 10)) + `}}`
		out = append(out, step.Delete(c.user, c.resource.Object(key), []byte(body), step.Subject{Key: key}))
	}
	return out
}

// Wake implements [step.Waker].
func (c *Cleaner) Wake() time.Time { return c.next }

// Done implements [step.Controller]. A request stays due until its deletion, or
// its change, is observed.
func (c *Cleaner) Done(step.Request, error) {}
