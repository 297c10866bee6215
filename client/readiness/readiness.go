// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness says why an object is not ready, down to the Pod, in words for conditions
// and messages.
//
//	why, err := readiness.Explain(ctx, c.Scheme(), c, statefulSet)
//	// StatefulSet db: 0 of 1 ready, Pod db-0: CrashLoopBackOff
//
// It reads the status that Kubernetes' own controllers write, and the conditions Ready and
// Available of other kinds.
package readiness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// mostText bounds what is quoted of a message, in bytes.
const mostText = 200

// Explain returns the kind and name of an object, why it is not ready by its own status, and
// the first of its Pods, by name, that is not ready either. Those of a workload that is not
// ready are listed with pods, in its namespace, by its spec.selector; a cached client needs to
// watch them, a live one the right to list them. nil leaves Pods out. With an error the text
// is that of the object alone.
func Explain(ctx context.Context, scheme *runtime.Scheme, pods client.Reader, obj client.Object) (string, error) {
	gvk, err := client.KindOf(scheme, obj)
	if err != nil {
		return obj.GetName(), fmt.Errorf("explain: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return gvk.Kind + " " + obj.GetName(), fmt.Errorf("explain %s: %w", gvk.Kind, err)
	}
	why := Of(gvk.GroupKind(), content)
	text := gvk.Kind + " " + obj.GetName()
	if why != "" {
		text += ": " + why
	}
	selector, ok := podsOf(gvk.GroupKind(), content)
	if why == "" || !ok || pods == nil {
		return text, nil
	}
	var list corev1.PodList
	if err := pods.List(ctx, &list, client.InNamespace(obj.GetNamespace()), selector); err != nil {
		return text, fmt.Errorf("explain %s: its Pods: %w", text, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list.Items {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
		if err != nil {
			return text, fmt.Errorf("explain %s: its Pods: %w", text, err)
		}
		if why := Of(schema.GroupKind{Kind: "Pod"}, content); why != "" {
			return text + ", Pod " + list.Items[i].Name + ": " + why, nil
		}
	}
	return text, nil
}

// Pods returns c, as what [Explain] lists Pods with, if obj is of their Go type, else none.
func Pods(obj client.Object, c, none client.Reader) client.Reader {
	if _, is := obj.(*corev1.Pod); is {
		return c
	}
	return none
}

// podsOf returns what selects the Pods of an object of a kind of Kubernetes' that has some.
func podsOf(kind schema.GroupKind, content map[string]any) (client.ListOption, bool) {
	if kind.Group != "apps" && kind.Group != "batch" {
		return nil, false
	}
	labels, _, _ := unstructured.NestedStringMap(content, "spec", "selector", "matchLabels")
	return client.MatchingLabels(labels), len(labels) > 0
}

// Of says why an object of a kind is not ready, by its own status: "0 of 1 ready", or the
// reason of a Pod's container, such as CrashLoopBackOff. It is empty for an object that is
// ready, and for one whose status does not say.
func Of(kind schema.GroupKind, content map[string]any) string {
	status := func(name string) int64 { return number(content, 0, "status", name) }
	switch kind {
	case schema.GroupKind{Kind: "Pod"}:
		return pod(content)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return counted(status("readyReplicas"), number(content, 1, "spec", "replicas"), "ready", condition(content, "ReplicaFailure", "True"))
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return counted(status("numberReady"), status("desiredNumberScheduled"), "ready", "")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if condition(content, "Complete", "True") != "" {
			return ""
		}
		return counted(status("succeeded"), number(content, 1, "spec", "completions"), "succeeded", condition(content, "Failed", "True"))
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		if phase, _, _ := unstructured.NestedString(content, "status", "phase"); phase != "Bound" {
			return cmp.Or(phase, "Pending")
		}
		return ""
	}
	for _, name := range []string{"Ready", "Available"} {
		for _, state := range []string{"False", "Unknown"} {
			if why := condition(content, name, state); why != "" {
				return why
			}
		}
	}
	return ""
}

// counted is a number of those that are wanted, and why there are no more.
func counted(have, want int64, what, why string) string {
	if have >= want && why == "" {
		return ""
	}
	text := fmt.Sprintf("%d of %d %s", have, want, what)
	if why != "" {
		text += ", " + why
	}
	return text
}

// pod says why a Pod is not ready: it has no node, or a container does not run.
func pod(content map[string]any) string {
	if phase, _, _ := unstructured.NestedString(content, "status", "phase"); phase == "Succeeded" || condition(content, "Ready", "True") != "" {
		return ""
	}
	if why := condition(content, "PodScheduled", "False"); why != "" {
		return why
	}
	later := ""
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(content, "status", field)
		for _, one := range list {
			c, _ := one.(map[string]any)
			waiting, _, _ := unstructured.NestedString(c, "state", "waiting", "reason")
			ended, _, _ := unstructured.NestedString(c, "state", "terminated", "reason")
			switch {
			case waiting == "ContainerCreating", waiting == "PodInitializing": // another one may be the cause
				later = cmp.Or(later, waiting)
			case waiting != "":
				return waiting
			case ended != "" && number(c, 0, "state", "terminated", "exitCode") != 0:
				return ended
			case ended == "" && c["ready"] == false:
				name, _ := c["name"].(string)
				later = cmp.Or(later, "container "+name+" is not ready")
			}
		}
	}
	return cmp.Or(later, condition(content, "Ready", "False"))
}

// number is that of a field, otherwise a default. It is an integer in objects of the API
// machinery, and no integer in what encoding/json has decoded.
func number(content map[string]any, otherwise int64, path ...string) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(content, path...)
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return otherwise
}

// condition returns "Reason: message" of a condition with a status, "" if there is none.
func condition(content map[string]any, name, state string) string {
	list, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, one := range list {
		c, _ := one.(map[string]any)
		if c["type"] != name || c["status"] != state {
			continue
		}
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		if len(message) > mostText {
			message = strings.ToValidUTF8(message[:mostText], "") + "..."
		}
		return strings.TrimSuffix(cmp.Or(reason, name+" is "+state)+": "+message, ": ")
	}
	return ""
}
