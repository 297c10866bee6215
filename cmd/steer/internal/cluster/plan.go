// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
)

// Effect is what an apply does to an object.
type Effect string

// Effects of an apply.
const (
	Created   Effect = "create"
	Changed   Effect = "change"
	Unchanged Effect = "unchanged"
)

// Step is one object of a [Plan].
type Step struct {
	Effect Effect
	Object manifest.Object
	// Fields that change, each as PATH: OLD -> NEW, sorted.
	Fields []string
}

// Plan is what an apply of objects would do, in their order.
type Plan []Step

// Examine finds out, by applying objects server-side without persisting them, what an
// apply with force would do. Objects in a namespace that an earlier object makes are
// counted as created.
func Examine(ctx context.Context, c client.Client, objects []manifest.Object) (Plan, error) {
	var plan Plan
	made := map[string]bool{} // namespaces
	for _, o := range objects {
		step, err := examine(ctx, c, o, made[o.GetNamespace()])
		if err != nil {
			return nil, fmt.Errorf("apply %s without persisting it: %w", name(o), err)
		}
		if step.Effect == Created && o.GetKind() == "Namespace" {
			made[o.GetName()] = true
		}
		plan = append(plan, step)
	}
	return plan, nil
}

func examine(ctx context.Context, c client.Client, o manifest.Object, namespaceIsNew bool) (Step, error) {
	step := Step{Effect: Created, Object: o}
	if namespaceIsNew { // a dry run would be refused
		return step, nil
	}
	live := client.NewUnstructured(o.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetName()}, live)
	if err != nil && !apierrors.IsNotFound(err) {
		return step, err
	}
	exists := err == nil
	after := o.DeepCopy()
	if err := c.Apply(ctx, after, client.ForceOwnership, client.DryRunAll); err != nil || !exists {
		return step, err
	}
	step.Fields = changes(live, after)
	step.Effect = Changed
	if len(step.Fields) == 0 {
		step.Effect = Unchanged
	}
	return step, nil
}

// Empty reports whether an apply changes nothing.
func (p Plan) Empty() bool {
	return !slices.ContainsFunc(p, func(s Step) bool { return s.Effect != Unchanged })
}

// String returns a line for each object, and below it one for each field that changes.
func (p Plan) String() string {
	var out strings.Builder
	for _, s := range p {
		fmt.Fprintf(&out, "%-9s  %s\n", s.Effect, name(s.Object))
		for _, field := range s.Fields {
			fmt.Fprintf(&out, "             %s\n", field)
		}
	}
	return out.String()
}

// Apply applies the objects that are created or changed, server-side and with force, and
// waits until new kinds are served.
func (p Plan) Apply(ctx context.Context, c client.Client) error {
	var objects []manifest.Object
	for _, s := range p {
		if s.Effect != Unchanged {
			objects = append(objects, s.Object)
		}
	}
	if err := manifest.Apply(ctx, c, "", objects); err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			if err := established(ctx, c, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// established waits until the kind of a definition is served.
func established(ctx context.Context, c client.Client, o manifest.Object) error {
	const patience, pause = 30 * time.Second, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		live := client.NewUnstructured(o.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKey{Name: o.GetName()}, live); err != nil {
			return fmt.Errorf("wait until %s is served: %w", name(o), err)
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, condition := range conditions {
			if is, _ := condition.(map[string]any); is["type"] == "Established" && is["status"] == "True" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not served: its conditions are %v; run: kubectl describe crd %s", name(o), conditions, o.GetName())
		case <-time.After(pause):
		}
	}
}

// name is the kind and the name of an object.
func name(o manifest.Object) string {
	if o.GetNamespace() != "" {
		return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// changes are the fields in which two states of an object differ, but for what the server
// sets.
func changes(before, after *unstructured.Unstructured) []string {
	var out []string
	a, b := settable(before.Object), settable(after.Object)
	differ("", a, b, &out)
	slices.Sort(out)
	return out
}

// settable is an object without what the server sets.
func settable(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"} {
			delete(metadata, field)
		}
		out["metadata"] = metadata
	}
	return out
}

// differ adds the paths at which two values differ.
func differ(path string, before, after any, to *[]string) {
	if reflect.DeepEqual(before, after) {
		return
	}
	if a, ok := before.(map[string]any); ok {
		if b, ok := after.(map[string]any); ok {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			for key := range keys {
				differ(strings.TrimPrefix(path+"."+key, "."), a[key], b[key], to)
			}
			return
		}
	}
	if a, ok := before.([]any); ok {
		if b, ok := after.([]any); ok {
			for i := range max(len(a), len(b)) {
				differ(fmt.Sprintf("%s[%d]", path, i), at(a, i), at(b, i), to)
			}
			return
		}
	}
	*to = append(*to, fmt.Sprintf("%s: %s -> %s", path, short(before), short(after)))
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// short is a value in few characters.
func short(value any) string {
	const most = 60
	if value == nil {
		return "none"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if runes := []rune(string(text)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(text)
}
