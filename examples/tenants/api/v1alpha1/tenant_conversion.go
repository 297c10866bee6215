// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/steer-dev/steer/webhook/conversion"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
)

// restAnnotation keeps what v1alpha1 does not have.
const restAnnotation = "platform.example.com/v1"

// rest is what v1alpha1 does not have.
type rest struct {
	Owners       []string `json:"owners,omitempty"` // all, if there are more than one
	MaxDatabases int32    `json:"maxDatabases,omitempty"`
	Namespace    string   `json:"namespace,omitempty"`
	Databases    int32    `json:"databases,omitempty"`
}

// ConvertTo converts to v1.
func (src *Tenant) ConvertTo(hub conversion.Hub) error {
	dst := hub.(*platformv1.Tenant)
	dst.ObjectMeta = src.ObjectMeta
	var r rest
	if text, ok := src.Annotations[restAnnotation]; ok {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("annotation %s: %w", restAnnotation, err)
		}
		dst.Annotations = maps.Clone(src.Annotations)
		if delete(dst.Annotations, restAnnotation); len(dst.Annotations) == 0 {
			dst.Annotations = nil
		}
	}
	dst.Spec.Owners = r.Owners
	switch { // the owner is what this version says, whatever is in the annotation
	case len(r.Owners) > 0:
		dst.Spec.Owners[0] = src.Spec.Owner
	case src.Spec.Owner != "":
		dst.Spec.Owners = []string{src.Spec.Owner}
	}
	dst.Spec.Plan, dst.Spec.MaxDatabases = src.Spec.Plan, r.MaxDatabases
	dst.Status.Namespace, dst.Status.Databases = r.Namespace, r.Databases
	dst.Status.ObservedGeneration = src.Status.ObservedGeneration
	dst.Status.Conditions = src.Status.Conditions
	return nil
}

// ConvertFrom converts from v1.
func (dst *Tenant) ConvertFrom(hub conversion.Hub) error {
	src := hub.(*platformv1.Tenant)
	dst.ObjectMeta = src.ObjectMeta
	r := rest{MaxDatabases: src.Spec.MaxDatabases, Namespace: src.Status.Namespace, Databases: src.Status.Databases}
	if len(src.Spec.Owners) > 0 {
		dst.Spec.Owner = src.Spec.Owners[0]
	}
	if len(src.Spec.Owners) > 1 || len(src.Spec.Owners) == 1 && dst.Spec.Owner == "" {
		r.Owners = src.Spec.Owners
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if string(text) != "{}" {
		dst.Annotations = maps.Clone(src.Annotations)
		if dst.Annotations == nil {
			dst.Annotations = map[string]string{}
		}
		dst.Annotations[restAnnotation] = string(text)
	}
	dst.Spec.Plan = src.Spec.Plan
	dst.Status.ObservedGeneration = src.Status.ObservedGeneration
	dst.Status.Conditions = src.Status.Conditions
	return nil
}
