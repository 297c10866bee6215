// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// benchPod is a Pod as a cluster has them, without managedFields.
func benchPod(i int, revision string) *corev1.Pod {
	yes, grace, after, mode := true, int64(30), int64(300), int32(0o644)
	started := metav1.NewTime(time.Unix(1_790_000_000, 0))
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d", i), Namespace: fmt.Sprint("ns-", i%20), UID: "0b7f3a52-7a3b-4a55-9f1c-0f4f6f6d1f0e", ResourceVersion: revision,
			Labels:          map[string]string{"app": fmt.Sprint("app-", i%50), "tier": "frontend", "team": "shop"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "checksum/config": "4a5b6c7d8e9f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "e2f1", Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprint("node-", i%100), ServiceAccountName: "web", TerminationGracePeriodSeconds: &grace, SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: &mode}}},
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &after, Path: "token"}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
				}}}},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}}, StartTime: &started},
	}
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: &after})
	}
	for c := range 2 {
		container := corev1.Container{
			Name: fmt.Sprint("c", c), Image: "registry.example.com/shop/web:v1.2.3", Args: []string{"--listen=:8080", "--config=/etc/web/config.yaml"},
			Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
			VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web"}, {Name: "token", MountPath: "/token"}},
			LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8080)}}},
			SecurityContext: &corev1.SecurityContext{
				RunAsNonRoot: &yes, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		}
		for e := range 12 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", e), Value: "some value of the usual length"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Ready: true, Started: &yes, Image: container.Image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	return pod
}

// canned is a server that has one list of Pods and one watch, as bytes.
type canned struct {
	list, watch []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(body io.Reader) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(body)}, nil
	}
	switch {
	case r.URL.Path == "/api":
		return answer(strings.NewReader(`{"kind":"APIVersions","versions":["v1"]}`))
	case r.URL.Path == "/apis":
		return answer(strings.NewReader(`{"kind":"APIGroupList"}`))
	case r.URL.Path == "/api/v1":
		return answer(strings.NewReader(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]}]}`))
	case r.URL.Path == "/version":
		return answer(strings.NewReader(`{"major":"1","minor":"36"}`))
	case r.URL.Query().Get("watch") != "":
		return answer(io.MultiReader(bytes.NewReader(c.watch), untilDone{r.Context()}))
	}
	return answer(bytes.NewReader(c.list))
}

// untilDone is a stream on which nothing comes.
type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

func podList(tb testing.TB, n int) []byte {
	tb.Helper()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1000000"}}
	for i := range n {
		list.Items = append(list.Items, *benchPod(i, fmt.Sprint(i+1)))
	}
	data, err := json.Marshal(&list)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func benchCache(tb testing.TB, server canned) *cache.Cache {
	tb.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	live, err := client.New(&rest.Config{Host: "http://canned.invalid", Transport: server}, client.Options{Scheme: scheme, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	c, err := cache.New(live, cache.Options{Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func syncedCache(tb testing.TB, server canned, handler cache.Handler) *cache.Cache {
	tb.Helper()
	c := benchCache(tb, server)
	inf, err := c.Informer(&corev1.Pod{})
	if err != nil {
		tb.Fatal(err)
	}
	if handler != nil {
		inf.AddHandler(handler)
	}
	if err := c.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	if err := c.WaitForSync(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return c
}

func BenchmarkInitialSync10k(b *testing.B) {
	server := canned{list: podList(b, 10_000)}
	b.ReportAllocs()
	b.SetBytes(int64(len(server.list)))
	for b.Loop() {
		syncedCache(b, server, nil).Stop()
	}
}

func BenchmarkEventToHandler(b *testing.B) {
	var watch bytes.Buffer
	const events = 2000
	for i := range events {
		data, _ := json.Marshal(benchPod(i%500, fmt.Sprint(2_000_000+i)))
		fmt.Fprintf(&watch, `{"type":"MODIFIED","object":%s}`+"\n", data)
	}
	server := canned{list: podList(b, 500), watch: watch.Bytes()}
	b.ReportAllocs()
	for b.Loop() {
		var updates atomic.Int64
		done := make(chan struct{})
		c := syncedCache(b, server, func(e cache.Event) {
			if e.Type == cache.Updated && updates.Add(1) == events {
				close(done)
			}
		})
		<-done
		c.Stop()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}

func BenchmarkReads(b *testing.B) {
	c := syncedCache(b, canned{list: podList(b, 10_000)}, nil)
	defer c.Stop()
	if err := c.IndexField(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }); err != nil {
		b.Fatal(err)
	}
	lister, err := cache.NewLister[*corev1.Pod](c)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var pod corev1.Pod
			if err := c.Get(ctx, client.ObjectKey{Namespace: "ns-7", Name: "web-00007"}, &pod); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, opts := range map[string][]client.ListOption{
		"all 10k": nil, "200 by label": {client.MatchingLabels{"app": "app-7"}},
		"100 by field": {client.MatchingFields{"spec.nodeName": "node-7"}}, "500 by namespace": {client.InNamespace("ns-7")},
	} {
		b.Run("list/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var pods corev1.PodList
				if err := c.List(ctx, &pods, opts...); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("iterate/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				all, err := lister.All(ctx, opts...)
				if err != nil {
					b.Fatal(err)
				}
				for range all {
				}
			}
		})
	}
}

func BenchmarkUpdateWithFiveIndexes(b *testing.B) {
	s := store.New("")
	for i := range 5 {
		if err := s.AddIndex(fmt.Sprint("index-", i), func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }); err != nil {
			b.Fatal(err)
		}
	}
	versions := []*corev1.Pod{benchPod(1, "1"), benchPod(1, "2")}
	var changes []store.Change
	deltas := make([]store.Delta, 1)
	b.ReportAllocs()
	revision := 10
	for b.Loop() {
		revision++
		next := versions[revision%2]
		next.ResourceVersion = fmt.Sprint(revision)
		deltas[0] = store.Delta{Op: store.Put, Object: next, Revision: next.ResourceVersion}
		changes = s.Commit(deltas, changes[:0])
	}
}
