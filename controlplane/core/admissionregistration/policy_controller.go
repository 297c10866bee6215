// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"encoding/json"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// PolicyControllerName is the name of a [PolicyController].
const PolicyControllerName = "validatingadmissionpolicy-status-controller"

// policies are kept in this bucket.
const policies = v1.GroupName + "/validatingadmissionpolicies"

// PolicyController says in the status of ValidatingAdmissionPolicies whether their
// expressions go with the types of the objects that they are about. A policy is looked
// at once per generation: kinds that are served later do not count.
type PolicyController struct {
	served func() []*resource.Resource
	due    step.KeySet
}

var _ step.Controller = (*PolicyController)(nil)

// NewPolicyController returns a controller that has seen nothing. served returns all that
// the server serves.
func NewPolicyController(served func() []*resource.Resource) *PolicyController {
	return &PolicyController{served: served, due: step.KeySet{}}
}

// Name implements [step.Controller].
func (*PolicyController) Name() string { return PolicyControllerName }

// Reset implements [step.Controller].
func (c *PolicyController) Reset(view storage.View) {
	c.due = step.KeySet{}
	for rec := range view.Ascend(policies, "", "") {
		c.due.Add(rec.Key)
	}
}

// Filter implements [step.Controller].
func (*PolicyController) Filter(e storage.Event) bool { return e.Record.Key.Bucket == policies }

// Handle implements [step.Controller].
func (c *PolicyController) Handle(e storage.Event) {
	if e.Deleted {
		delete(c.due, e.Record.Key)
	} else {
		c.due.Add(e.Record.Key)
	}
}

// Sync implements [step.Controller].
func (c *PolicyController) Sync(view storage.View, now time.Time) []step.Request {
	var out []step.Request
	for _, key := range c.due.Sorted() {
		var p v1.ValidatingAdmissionPolicy
		if rec := view.Get(key); rec == nil || step.Decode(rec, &p) != nil || p.Generation <= p.Status.ObservedGeneration {
			continue
		}
		out = append(out, sayOfPolicy(key, &p, checkTypes(&p, c.served(), now)))
	}
	clear(c.due)
	return out
}

// sayOfPolicy is the request that applies the status of a policy.
func sayOfPolicy(key storage.Key, p *v1.ValidatingAdmissionPolicy, warnings []v1.ExpressionWarning) step.Request {
	body, _ := json.Marshal(map[string]any{ // types of the API: cannot fail
		"apiVersion": v1.SchemeGroupVersion.String(), "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": key.Name},
		"status": v1.ValidatingAdmissionPolicyStatus{ObservedGeneration: p.Generation, TypeChecking: &v1.TypeChecking{ExpressionWarnings: warnings}},
	})
	path := step.Resource{Group: v1.GroupName, Version: "v1", Plural: "validatingadmissionpolicies"}.Object(key) + "/status"
	return step.Apply(step.KubeSystem+PolicyControllerName, path, "validatingadmissionpolicy-status", body, step.Subject{Key: key})
}

// Done implements [step.Controller].
func (c *PolicyController) Done(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}
