// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Names in the API.
const (
	plural     = "apiservices"
	group      = "apiregistration.k8s.io"
	apiVersion = group + "/v1"
	// Bucket is where APIServices are stored.
	Bucket = group + "/" + plural
)

type service = *v1.APIService

// shared is the kind without what is of one plane.
var shared = sync.OnceValue(func() *resource.Resource {
	k := kind.Definition[v1.APIService, service]{
		Group: group, Version: "v1", Plural: plural, Cluster: true, Categories: []string{"api-extensions"}, Status: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true, AnyFinalizer: true, KeepMetadataInStatus: true},
		Defaults: func(s service) {
			if s.Spec.Service != nil {
				kind.Fill(&s.Spec.Service.Port, int32(443))
			}
		},
		Prepare: func(_ context.Context, s, old service) {
			if old == nil && s.Spec.Service == nil {
				setCondition(s, locally())
			}
		},
		Validate:       func(s, _ service) field.ErrorList { return validate(s) },
		ValidateStatus: func(s, _ service) field.ErrorList { return validateStatus(s) },
		Columns:        columns(),
		Row:            row,
	}
	r := k.Resource()
	r.NameRule = func(string, bool) []string { return nil } // its own rule needs the whole object
	return r
})

func columns() []metav1.TableColumnDefinition {
	out := kind.Columns("Name", "Service", "Available", "Age")
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	for i := range out {
		switch out[i].Name {
		case "Name":
			out[i].Description = docs["name"]
		case "Service":
			out[i].Description = "The reference to the service that hosts this API endpoint."
		case "Available":
			out[i].Description = "Whether this service is available."
		case "Age":
			out[i].Description = docs["creationTimestamp"]
		}
	}
	return out
}

func row(s service) []any {
	where, state := "Local", string(v1.ConditionUnknown)
	if to := s.Spec.Service; to != nil {
		where = to.Namespace + "/" + to.Name
	}
	if c := condition(s); c != nil {
		state = string(c.Status)
		if c.Status != v1.ConditionTrue && c.Reason != "" {
			state += " (" + c.Reason + ")"
		}
	}
	return []any{s.Name, where, state, kind.Age(s)}
}

// condition reports whether a service is available; nil: that is not known.
func condition(s service) *v1.APIServiceCondition {
	for i := range s.Status.Conditions {
		if c := &s.Status.Conditions[i]; c.Type == v1.Available {
			return c
		}
	}
	return nil
}

// setCondition replaces the condition, and reports whether that changed anything.
func setCondition(s service, c v1.APIServiceCondition) bool {
	old := condition(s)
	if old == nil {
		s.Status.Conditions = append(s.Status.Conditions, c)
		return true
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	changed := *old != c
	*old = c
	return changed
}

// locally is the condition of what this server has itself.
func locally() v1.APIServiceCondition {
	return v1.APIServiceCondition{
		Type: v1.Available, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Reason: localReason, Message: localMessage,
	}
}

const (
	localReason  = "Local"
	localMessage = "Local APIServices are always available"
)
