// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// Authors finds out who made a change, by the managedFields of the object. It is not safe
// for concurrent use.
type Authors struct {
	Client client.Client

	known map[trace.Cause]string // of the changes that are shown
}

// Of is the field manager that changed the first field of a cause last; empty if that is
// not known.
func (a *Authors) Of(ctx context.Context, c trace.Cause) string {
	if c.Changed == "" || c.Name == "" {
		return ""
	}
	c.Count = 0
	if by, ok := a.known[c]; ok {
		return by
	}
	by := a.ask(ctx, c)
	if len(a.known) > 100 || a.known == nil {
		a.known = map[trace.Cause]string{}
	}
	a.known[c] = by
	return by
}

func (a *Authors) ask(ctx context.Context, c trace.Cause) string {
	resources, err := a.Client.Mapper().All(ctx)
	if err != nil {
		return ""
	}
	for _, r := range resources {
		if r.GVK.Group != c.Group || r.GVK.Kind != c.Kind {
			continue
		}
		obj := client.NewMetadata(schema.GroupVersionKind{Group: c.Group, Version: r.GVK.Version, Kind: c.Kind})
		if a.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj) != nil {
			return ""
		}
		changed, _, _ := strings.Cut(c.Changed, ",")
		return managerOf(obj.ManagedFields, changed)
	}
	return ""
}

// managerOf is the manager that wrote a field, such as spec.replicas, last.
func managerOf(entries []metav1.ManagedFieldsEntry, field string) string {
	by, latest := "", metav1.Time{}
	for _, entry := range entries {
		var fields map[string]any
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || !owns(fields, field) {
			continue
		}
		if entry.Time == nil || by != "" && entry.Time.Before(&latest) {
			continue
		}
		by, latest = entry.Manager, *entry.Time
	}
	return by
}

// owns reports whether fields, in the form of managedFields, have a path. Items of lists
// count as the list.
func owns(fields map[string]any, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		name, _, item := strings.Cut(name, "[")
		next, ok := fields["f:"+name].(map[string]any)
		if !ok {
			return false
		}
		if item || len(next) == 0 {
			return true
		}
		fields = next
	}
	return true
}
