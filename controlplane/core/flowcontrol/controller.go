// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// ControllerName is the name of a [Controller], and the field manager of what it writes.
const ControllerName = "api-priority-and-fairness-config-consumer-v1"

// Controller says of FlowSchemas whether the priority level that they name is there
// (KEP-1040), which kube-apiserver does itself. It sets no conditions on priority levels.
type Controller struct {
	due step.KeySet
	all bool // are due
}

var _ step.Controller = (*Controller)(nil)

// NewController returns a controller that has seen nothing.
func NewController() *Controller { return &Controller{due: step.KeySet{}} }

// Name implements [step.Controller].
func (*Controller) Name() string { return ControllerName }

// Reset implements [step.Controller]. In a fresh cluster there is nothing to look at.
func (c *Controller) Reset(view storage.View) {
	*c = *NewController()
	known := map[storage.Key]bool{}
	for key := range fresh().byKey {
		known[key] = true
		c.all = c.all || key.Bucket == levels && view.Get(key) == nil
	}
	for rec := range view.Ascend(schemas, "", "") {
		if rec.Created != rec.Modified || !known[rec.Key] {
			c.due.Add(rec.Key)
		}
	}
}

// Filter implements [step.Controller].
func (*Controller) Filter(e storage.Event) bool {
	return e.Record.Key.Bucket == schemas || e.Record.Key.Bucket == levels
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	switch rec := e.Record; {
	case rec.Key.Bucket == levels:
		c.all = c.all || e.Deleted || rec.Created == rec.Modified
	case e.Deleted:
		delete(c.due, rec.Key)
	default:
		c.due.Add(rec.Key)
	}
}

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	if c.all {
		for rec := range view.Ascend(schemas, "", "") {
			c.due.Add(rec.Key)
		}
		c.all = false
	}
	var out []step.Request
	for _, key := range c.due.Sorted() {
		var s flowcontrolv1.FlowSchema
		if rec := view.Get(key); rec == nil || step.Decode(rec, &s) != nil {
			continue
		}
		level := s.Spec.PriorityLevelConfiguration.Name
		want := dangling(level, view.Get(storage.Key{Bucket: levels, Name: level}) != nil)
		if !slices.ContainsFunc(s.Status.Conditions, func(is flowcontrolv1.FlowSchemaCondition) bool {
			is.LastTransitionTime = metav1.Time{}
			return is == want
		}) {
			want.LastTransitionTime = metav1.NewTime(now)
			out = append(out, say(key, want))
		}
	}
	clear(c.due)
	return out
}

// dangling is the condition of a FlowSchema that names a priority level.
func dangling(level string, found bool) flowcontrolv1.FlowSchemaCondition {
	c := flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
	}
	if !found {
		c.Status, c.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		c.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level)
	}
	return c
}

// say is the request that applies a condition.
func say(key storage.Key, condition flowcontrolv1.FlowSchemaCondition) step.Request {
	body, _ := json.Marshal(map[string]any{ // types of the API: cannot fail
		"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema", "metadata": map[string]any{"name": key.Name},
		"status": map[string]any{"conditions": []flowcontrolv1.FlowSchemaCondition{condition}},
	})
	path := step.Resource{Group: flowcontrolv1.GroupName, Version: "v1", Plural: "flowschemas"}.Object(key) + "/status"
	return step.Apply(step.APIServer, path, ControllerName, body, step.Subject{Key: key})
}

// Done implements [step.Controller].
func (c *Controller) Done(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}
