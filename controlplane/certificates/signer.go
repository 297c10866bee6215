// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"encoding/json"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// user is the identity of both controllers.
const user = step.KubeSystem + "certificate-controller"

// requests is the resource of CertificateSigningRequests.
func requests() step.Resource {
	return step.Resource{Bucket: bucket, Group: certificatesv1.GroupName, Version: "v1", Plural: plural, Kind: "CertificateSigningRequest"}
}

// Signer is the controller that signs approved requests for the signers of
// Kubernetes: kube-apiserver-client, kube-apiserver-client-kubelet,
// kubelet-serving and legacy-unknown.
type Signer struct {
	authority func() (*Authority, error)
	due       step.KeySet
}

var _ step.Controller = (*Signer)(nil)

// NewSigner returns the controller. It calls authority when it has
// something to sign.
func NewSigner(authority func() (*Authority, error)) *Signer {
	return &Signer{authority: authority, due: step.KeySet{}}
}

// Name implements [step.Controller].
func (*Signer) Name() string { return "certificatesigningrequest-signing-controller" }

// Reset implements [step.Controller].
func (s *Signer) Reset(view storage.View) {
	clear(s.due)
	for rec := range view.Ascend(bucket, "", "") {
		s.due.Add(rec.Key)
	}
}

// Filter implements [step.Controller].
func (*Signer) Filter(e storage.Event) bool { return e.Record.Key.Bucket == bucket && !e.Deleted }

// Handle implements [step.Controller].
func (s *Signer) Handle(e storage.Event) { s.due.Add(e.Record.Key) }

// Sync implements [step.Controller].
func (s *Signer) Sync(view storage.View, now time.Time) []step.Request {
	var out []step.Request
	for _, key := range s.due.Sorted() {
		if r := read(view.Get(key)); r != nil && s.answer(r, now) {
			if body, err := json.Marshal(r); err == nil {
				out = append(out, step.Put(user, requests().Object(key)+"/status", body, step.Subject{Key: key}))
			}
		}
	}
	clear(s.due)
	return out
}

// answer signs a request, or sets the condition Failed, and reports whether there was anything
// to do.
func (s *Signer) answer(r request, now time.Time) bool {
	if !signs(r.Spec.SignerName) || len(r.Status.Certificate) > 0 || r.DeletionTimestamp != nil ||
		!has(r, certificatesv1.CertificateApproved) || has(r, certificatesv1.CertificateFailed) {
		return false
	}
	csr, err := parse(r.Spec.Request)
	if err == nil {
		err = check(r.Spec.SignerName, csr, r.Spec.Usages)
	}
	if err != nil {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure",
			Message: err.Error(), LastUpdateTime: metav1.NewTime(now),
		})
		return true
	}
	authority, err := s.authority()
	if err != nil {
		return false // without its keys the plane does not serve
	}
	r.Status.Certificate, err = authority.issue(r, csr, now)
	return err == nil
}

// Done implements [step.Controller].
func (s *Signer) Done(r step.Request, err error) {
	if err != nil {
		s.due.Add(r.Subject.Key)
	}
}

// read decodes a request; nil if it is unreadable.
func read(rec *storage.Record) request {
	r := &certificatesv1.CertificateSigningRequest{}
	if rec == nil || json.Unmarshal(rec.Value, r) != nil {
		return nil
	}
	return r
}
