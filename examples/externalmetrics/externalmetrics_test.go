// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// patience bounds what a test waits for.
const patience = 2 * time.Minute

// cluster is a control plane with the server of this example behind it.
type cluster struct {
	client.Client
	t *testing.T
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	plane, err := controlplane.New(controlplane.Options{Listen: "127.0.0.1:0", Workloads: &workloads.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, config)
}

// serve starts the server of this example behind a control plane, and returns when it is available.
func serve(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server()
	configure := s.Configure
	s.Configure = func(o *extension.Options) {
		o.Cluster, o.Listener, o.Drain, o.Log = config, listener, -1, slog.New(slog.DiscardHandler)
		o.Service.ExternalName = "localhost"
		configure(o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- extension.Run(ctx, nil, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	scheme, err := client.NewScheme(corev1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	c.until("queues are not served", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("queues.example.com/v1")
		list.SetKind("QueueList")
		return c.List(t.Context(), list) == nil
	})
	for _, group := range []string{"v1beta1.external.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"} {
		c.until(group+" is not available", func() bool {
			service := &unstructured.Unstructured{}
			service.SetAPIVersion("apiregistration.k8s.io/v1")
			service.SetKind("APIService")
			if c.Get(t.Context(), client.ObjectKey{Name: group}, service) != nil {
				return false
			}
			all, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
			return len(all) > 0 && all[0].(map[string]any)["status"] == "True"
		})
	}
	return c
}

// until waits for a condition.
func (c *cluster) until(otherwise string, holds func() bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !holds(); {
		select {
		case <-end:
			c.t.Fatal(otherwise)
		case <-tick.C:
		}
	}
}

// create creates an object from YAML.
func (c *cluster) create(manifest string) {
	c.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		c.t.Fatal(err)
	}
	obj.SetNamespace("default")
	if err := c.Create(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

// work creates a queue and a Deployment that works on it, and waits until its Pods are ready.
func (c *cluster) work(name, length string, replicas int32) {
	c.t.Helper()
	c.create("{apiVersion: queues.example.com/v1, kind: Queue, metadata: {name: " + name + "}, spec: {length: " + length + "}}")
	tags := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: tags},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: tags},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/worker"}}},
			},
		},
	}
	if err := c.Create(c.t.Context(), d); err != nil {
		c.t.Fatal(err)
	}
	c.until("the Pods of "+name+" are not ready", func() bool {
		return c.Get(c.t.Context(), client.ObjectKeyFromObject(d), d) == nil && d.Status.ReadyReplicas == replicas
	})
}

// scales waits until an autoscaler has given its Deployment a number of replicas, and returns
// its conditions.
func (c *cluster) scales(name string, replicas int32) string {
	c.t.Helper()
	var d appsv1.Deployment
	var a autoscalingv2.HorizontalPodAutoscaler
	key := client.ObjectKey{Namespace: "default", Name: name}
	c.until("not scaled: "+name, func() bool {
		return c.Get(c.t.Context(), key, &d) == nil && *d.Spec.Replicas == replicas && d.Status.ReadyReplicas == replicas &&
			c.Get(c.t.Context(), key, &a) == nil && a.Status.DesiredReplicas == replicas
	})
	var out []string
	for _, condition := range a.Status.Conditions {
		out = append(out, string(condition.Type)+"="+string(condition.Status)+" "+condition.Reason)
	}
	return strings.Join(out, ", ")
}

// TestAutoscalersFollowQueues: up, down, and to their bounds, by metrics of each kind.
func TestAutoscalersFollowQueues(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const (
		external  = "{type: External, external: {metric: {name: queue-length, selector: {matchLabels: {queue: NAME}}}, target: {type: AverageValue, averageValue: '10'}}}"
		service   = "{type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: NAME}, metric: {name: queue-length}, target: {type: Value, value: '10'}}}"
		pods      = "{type: Pods, pods: {metric: {name: queue-share, selector: {matchLabels: {queue: NAME}}}, target: {type: AverageValue, averageValue: '10'}}}"
		rescaled  = "AbleToScale=True SucceededRescale, ScalingActive=True ValidMetricFound, ScalingLimited="
		notToZero = ", ScaledToZero=False NotScaledToZero" // HPAScaleToZero (KEP-2021)
	)
	for name, test := range map[string]struct {
		metric, length string
		from, to       int32
		limited        string
	}{
		"up":       {external, "38", 2, 4, "False DesiredWithinRange"},
		"most":     {external, "1000", 4, 6, "True TooManyReplicas"},
		"down":     {external, "21", 6, 3, "False DesiredWithinRange"},
		"least":    {external, "0", 3, 1, "True TooFewReplicas"},
		"services": {service, "20", 2, 4, "False DesiredWithinRange"},
		"pods":     {pods, "30", 2, 3, "False DesiredWithinRange"},
	} {
		c.work(name, test.length, test.from)
		c.create("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: " + name + "}, spec: {maxReplicas: 6, " +
			"behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " + name + "}, " +
			"metrics: [" + strings.ReplaceAll(test.metric, "NAME", name) + "]}}")
		if got, want := c.scales(name, test.to), rescaled+test.limited+notToZero; got != want {
			t.Errorf("%s: the conditions are %s, want %s", name, got, want)
		}
	}
}

// TestAutoscalerFollowsAQueueThatGrows: within the 15 seconds between two looks.
func TestAutoscalerFollowsAQueueThatGrows(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.work("orders", "8", 1)
	manifest, err := os.ReadFile("config/autoscaler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.create(string(manifest))
	var a autoscalingv2.HorizontalPodAutoscaler
	key := client.ObjectKey{Namespace: "default", Name: "orders"}
	c.until("the metric is not read", func() bool {
		return c.Get(t.Context(), key, &a) == nil && len(a.Status.CurrentMetrics) == 1 && a.Status.CurrentReplicas == 1
	})
	queue := &unstructured.Unstructured{}
	queue.SetAPIVersion("queues.example.com/v1")
	queue.SetKind("Queue")
	queue.SetNamespace("default")
	queue.SetName("orders")
	if err := c.Patch(t.Context(), queue, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"length":30}}`))); err != nil {
		t.Fatal(err)
	}
	c.scales("orders", 3)
	var events corev1.EventList
	if err := c.List(t.Context(), &events, client.InNamespace("default"), client.MatchingFields{"involvedObject.kind": "HorizontalPodAutoscaler"}); err != nil {
		t.Fatal(err)
	}
	const want = "New size: 3; reason: external metric queue-length(&LabelSelector{MatchLabels:map[string]string{queue: orders,},MatchExpressions:[]LabelSelectorRequirement{},}) above target"
	if len(events.Items) != 1 || events.Items[0].Reason != "SuccessfulRescale" || events.Items[0].Message != want {
		t.Errorf("the Events are %+v", events.Items)
	}
}
