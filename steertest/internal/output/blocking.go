// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/readiness"
)

// Blocking says which workloads keep an object from being ready, and why: the object itself, or
// those of its namespace that it controls, down to the Pod. It is empty if there is none, or if
// they cannot be read.
func Blocking(ctx context.Context, config *rest.Config, obj client.Object) string {
	scheme, err := client.NewScheme(appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme)
	if err != nil {
		return ""
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return ""
	}
	var b strings.Builder
	explain := func(one client.Object) {
		if text, err := readiness.Explain(ctx, scheme, c, one); err == nil && strings.Contains(text, ": ") {
			b.WriteString("\nnot ready: " + text)
		}
	}
	explain(obj)
	var deployments appsv1.DeploymentList
	var sets appsv1.StatefulSetList
	var daemons appsv1.DaemonSetList
	var jobs batchv1.JobList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&deployments, &sets, &daemons, &jobs, &pods} {
		if err := c.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
			return b.String()
		}
	}
	controlled := func(one client.Object) {
		if metav1.IsControlledBy(one, obj) {
			explain(one)
		}
	}
	each(deployments.Items, controlled)
	each(sets.Items, controlled)
	each(daemons.Items, controlled)
	each(jobs.Items, controlled)
	each(pods.Items, controlled)
	return b.String()
}

// each calls fn with every object of a list.
func each[T any, P interface {
	*T
	client.Object
}](items []T, fn func(client.Object)) {
	for i := range items {
		fn(P(&items[i]))
	}
}
