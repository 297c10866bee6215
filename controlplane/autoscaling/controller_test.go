// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// world is a store whose events the controller observes.
type world struct {
	store      storage.Store
	cursor     storage.Cursor
	controller *Controller
	now        time.Time
	// metrics are served at their paths; all others are not found.
	metrics map[string]string
	// told are the reasons and messages of Events.
	told []string
}

func newWorld(t *testing.T, more ...step.Resource) *world {
	t.Helper()
	catalog := steptest.Catalog{
		{Bucket: "apps/deployments", Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true},
		{Bucket: "configmaps", Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
	}
	w := &world{
		store: storage.NewMemory(storage.MemoryOptions{}), metrics: map[string]string{},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	w.controller = NewController(append(catalog, more...), w.fetch)
	var err error
	if w.cursor, err = w.store.Watch(storage.Range{}, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cursor.Close(); _ = w.store.Close() })
	w.put(t, "namespaces", "default", "{metadata: {name: default}}")
	return w
}

// fetch implements [step.Fetcher].
func (w *world) fetch(_ context.Context, r step.Request) (io.ReadCloser, error) {
	path := r.Path
	if len(r.Query) > 0 {
		path += "?" + r.Query.Encode()
	}
	body, ok := w.metrics[path]
	if !ok {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Message: "404 page not found"}}
	}
	return io.NopCloser(strings.NewReader(body)), nil
}

// put stores an object in YAML.
func (w *world) put(t *testing.T, bucket, name, manifest string) {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	steptest.Put(t, w.store, storage.Key{Bucket: bucket, Name: name}, o)
}

// scaler stores an autoscaler of 2 to 5 replicas.
func (w *world) scaler(t *testing.T, apiVersion, kind, more string) {
	t.Helper()
	w.put(t, scalers, "default/a", fmt.Sprintf("{metadata: {name: a, namespace: default}, spec: {minReplicas: 2, maxReplicas: 5, "+
		"scaleTargetRef: {apiVersion: %s, kind: %s, name: web}%s}}", apiVersion, kind, more))
}

// deployment stores the target with a number of replicas.
func (w *world) deployment(t *testing.T, replicas int) {
	t.Helper()
	w.put(t, "apps/deployments", "default/web", fmt.Sprintf("{metadata: {name: web, namespace: default}, spec: {replicas: %d, selector: {matchLabels: {app: web}}}}", replicas))
}

// step observes what was written and returns the request of one step about the autoscaler,
// nil for none. Metrics are read, and Events taken note of, at once.
func (w *world) step(t *testing.T) *step.Request {
	t.Helper()
	for range 10 {
		batch, err := w.cursor.Poll()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			steptest.Observe(w.controller, e)
		}
		var out *step.Request
		again := false
		for _, r := range w.controller.Sync(w.store.Latest(), w.now) {
			switch {
			case r.Do != nil:
				if err := r.Do(t.Context()); err != nil {
					t.Fatal(err)
				}
			case r.Subject.Key.Bucket == "events":
				w.tell(t, r)
			case out != nil:
				t.Fatalf("one autoscaler has the requests %s and %s", out.Path, r.Path)
			default:
				out = &r
				continue
			}
			again = true
			w.controller.Done(r, nil)
		}
		if out != nil || !again {
			return out
		}
	}
	t.Fatal("the controller does not come to rest")
	return nil
}

// tell stores an Event, or counts one.
func (w *world) tell(t *testing.T, r step.Request) {
	t.Helper()
	if r.Method == http.MethodPatch {
		var stored corev1.Event
		if err := json.Unmarshal(w.store.Latest().Get(r.Subject.Key).Value, &stored); err != nil {
			t.Fatal(err)
		}
		w.told = append(w.told, fmt.Sprintf("%s %s: %s", stored.Type, stored.Reason, stored.Message))
		return
	}
	var envelope runtime.Unknown
	e := &corev1.Event{}
	if err := envelope.Unmarshal(r.Body[4:]); err != nil {
		t.Fatal(err)
	}
	if err := e.Unmarshal(envelope.Raw); err != nil {
		t.Fatal(err)
	}
	steptest.Put(t, w.store, r.Subject.Key, e)
	w.told = append(w.told, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
}

// settle steps until nothing is left to do, as an API server that admits everything, and
// returns the last status of the autoscaler.
func (w *world) settle(t *testing.T) autoscalingv2.HorizontalPodAutoscalerStatus {
	t.Helper()
	for range 10 {
		r := w.step(t)
		if r == nil {
			var o autoscalingv2.HorizontalPodAutoscaler
			if err := json.Unmarshal(w.store.Latest().Get(storage.Key{Bucket: scalers, Name: "default/a"}).Value, &o); err != nil {
				t.Fatal(err)
			}
			return o.Status
		}
		if strings.HasSuffix(r.Path, "/status") {
			w.put(t, scalers, "default/a", string(r.Body))
		} else {
			w.deployment(t, int(scaleOf(t, r).Spec.Replicas))
		}
		w.controller.Done(*r, nil)
	}
	t.Fatal("the controller does not come to rest")
	return autoscalingv2.HorizontalPodAutoscalerStatus{}
}

func scaleOf(t *testing.T, r *step.Request) *autoscalingv1.Scale {
	t.Helper()
	const path = "/apis/apps/v1/namespaces/default/deployments/web/scale"
	if r == nil || r.Method != "PUT" || r.Path != path || r.User != "system:serviceaccount:kube-system:horizontal-pod-autoscaler" {
		t.Fatalf("the request is %+v, want PUT %s", r, path)
	}
	scale := &autoscalingv1.Scale{}
	if err := json.Unmarshal(r.Body, scale); err != nil {
		t.Fatal(err)
	}
	return scale
}

func conditions(s autoscalingv2.HorizontalPodAutoscalerStatus) string {
	var out []string
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "\n")
}

const able = "AbleToScale True SucceededGetScale: the HPA controller was able to get the target's current scale"

func TestControllerKeepsTargetsWithinTheirBounds(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int]int32{0: 0, 1: 2, 2: 2, 5: 5, 6: 5} {
		w := newWorld(t)
		w.scaler(t, "apps/v1", "Deployment", "")
		w.deployment(t, replicas)
		status := w.settle(t)
		if scaled := status.LastScaleTime != nil; status.CurrentReplicas != int32(replicas) || status.DesiredReplicas != want || scaled != (want != int32(replicas)) {
			t.Errorf("%d replicas: status has %d, %d are desired, scaled: %v; want %d", replicas, status.CurrentReplicas, status.DesiredReplicas, scaled, want)
		}
		w.now = w.now.Add(period)
		if status = w.settle(t); status.CurrentReplicas != want {
			t.Errorf("%d replicas: 15 s later the status has %d, want %d", replicas, status.CurrentReplicas, want)
		}
	}
	w := newWorld(t)
	w.put(t, scalers, "default/a", "{metadata: {name: a, namespace: default}, spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}")
	w.deployment(t, 1)
	if status := w.settle(t); status.CurrentReplicas != 1 {
		t.Errorf("without minReplicas one replica becomes %d", status.CurrentReplicas)
	}
}

func TestControllerScalesOnlyEveryFifteenSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scaler(t, "apps/v1", "Deployment", "")
	w.deployment(t, 9)
	r := w.step(t)
	if scaleOf(t, r).Spec.Replicas != 5 || scaleOf(t, r).ResourceVersion != "3" {
		t.Errorf("the scale is %s, want 5 replicas at revision 3", r.Body)
	}
	w.controller.Reset(w.store.Latest())
	w.controller.Done(*r, errors.New("of an earlier history"))
	if at := w.settle(t).LastScaleTime; at == nil || !at.Time.Equal(w.now) {
		t.Errorf("the last scaling was at %v, want %v", at, w.now)
	}
	w.now = w.now.Add(14 * time.Second)
	w.deployment(t, 1)
	if r := w.step(t); r != nil {
		t.Errorf("14 s later the request is %s %s", r.Method, r.Path)
	}
	if at := w.controller.Wake(); !at.Equal(w.now.Add(time.Second)) {
		t.Errorf("the next step is at %v, want 15 s after the last scaling", at)
	}
	w.now = w.now.Add(time.Second)
	if r := w.step(t); scaleOf(t, r).Spec.Replicas != 2 {
		t.Errorf("15 s later the scale is %s, want 2 replicas", r.Body)
	}
}

func TestControllerLooksAtAChangedSpecAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scaler := func(generation, most int) {
		w.put(t, scalers, "default/a", fmt.Sprintf("{metadata: {name: a, namespace: default, generation: %d}, "+
			"spec: {minReplicas: 2, maxReplicas: %d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", generation, most))
	}
	scaler(1, 5)
	w.deployment(t, 9)
	if status := w.settle(t); status.DesiredReplicas != 5 || status.ObservedGeneration == nil || *status.ObservedGeneration != 1 {
		t.Errorf("the first pass leaves %+v", status)
	}
	w.now = w.now.Add(time.Second)
	scaler(2, 3)
	if status := w.settle(t); status.DesiredReplicas != 3 || *status.ObservedGeneration != 2 {
		t.Errorf("a second after it, the spec has changed: %+v", status)
	}
	w.deployment(t, 9)
	if r := w.step(t); r != nil {
		t.Errorf("the target alone has changed, and the request is %s %s", r.Method, r.Path)
	}
}

func TestControllerNamesTwoAutoscalersOfTheSamePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, step.Resource{Bucket: "pods", Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	for _, name := range []string{"c", "b", "a"} {
		w.put(t, scalers, "default/"+name, fmt.Sprintf("{metadata: {name: %s, namespace: default}, spec: {minReplicas: 2, maxReplicas: 5, "+
			"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}", name))
	}
	w.deployment(t, 3)
	w.put(t, "pods", "default/p", "{metadata: {name: p, namespace: default, labels: {app: web}}}")
	const want = "pods by selector app=web are controlled by more than one HPA (e.g. [{a default} {b default}])"
	w.controller.Reset(w.store.Latest())
	said := 0
	for _, r := range w.controller.Sync(w.store.Latest(), w.now) { // the first of the three reads its metrics
		if strings.HasSuffix(r.Path, "/status") && strings.Contains(string(r.Body), want) {
			said++
		}
	}
	if said != 2 {
		t.Errorf("%d statuses say %q, want those of b and c", said, want)
	}
}

func TestControllerRetriesRefusedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scaler(t, "apps/v1", "Deployment", "")
	w.deployment(t, 1)
	first := w.step(t)
	scaleOf(t, first)
	if r := w.step(t); r != nil {
		t.Errorf("before the outcome is known the request is %s %s", r.Method, r.Path)
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed"))
	w.controller.Done(*first, conflict)
	scaleOf(t, w.step(t))
}

func TestControllerSaysThatATargetCannotBeScaled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scaler(t, "apps/v1", "Deployment", "")
	w.deployment(t, 1)
	w.controller.Done(*w.step(t), errors.New("no"))
	status := w.settle(t)
	if got, want := conditions(status), "AbleToScale False FailedUpdateScale: the HPA controller was unable to update the target scale: no"; got != want || status.LastScaleTime != nil {
		t.Errorf("the conditions are\n%s\nwant\n%s", got, want)
	}
	if got, want := strings.Join(w.told, "\n"), "Warning FailedRescale: New size: 2; reason: Current number of replicas below Spec.MinReplicas; error: no"; got != want {
		t.Errorf("the Events are\n%s\nwant\n%s", got, want)
	}
	w.now = w.now.Add(period)
	scaleOf(t, w.step(t))
}

func TestControllerFollowsTheTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scaler(t, "apps/v1", "Deployment", "")
	if got, want := conditions(w.settle(t)), `AbleToScale False FailedGetScale: the HPA controller was unable to get the target's current scale: deployments.apps "web" not found`; got != want {
		t.Errorf("without a target the conditions are\n%s\nwant\n%s", got, want)
	}
	began := w.now
	w.now = w.now.Add(time.Minute)
	w.deployment(t, 3)
	status := w.settle(t)
	if got := conditions(status); got != able {
		t.Errorf("with a target the conditions are\n%s\nwant\n%s", got, able)
	}
	if at := status.Conditions[0].LastTransitionTime; !at.Time.Equal(w.now) {
		t.Errorf("the condition changed at %v, want %v", at, w.now)
	}
	w.now = w.now.Add(time.Minute)
	w.deployment(t, 0)
	want := able + "\nScalingActive False ScalingDisabled: scaling is disabled since the replica count of the target is zero"
	status = w.settle(t)
	if got := conditions(status); got != want {
		t.Errorf("with no replicas the conditions are\n%s\nwant\n%s", got, want)
	}
	if at := status.Conditions[0].LastTransitionTime; !at.Time.Equal(began.Add(time.Minute)) {
		t.Errorf("the condition that is as before changed at %v", at)
	}
	steptest.Put(t, w.store, storage.Key{Bucket: scalers, Name: "default/a"}, nil)
	if w.step(t); len(w.controller.watching) != 0 || len(w.controller.targets) != 0 {
		t.Errorf("a deleted autoscaler leaves %v and %v", w.controller.watching, w.controller.targets)
	}
}

func TestControllerWaitsForTheKindOfATarget(t *testing.T) {
	t.Parallel()
	const (
		unable     = "AbleToScale False FailedGetScale: the HPA controller was unable to get the target's current scale: "
		definition = "{metadata: {name: crontabs.example.com}, spec: {versions: [{name: v1, subresources: %s}]}}"
	)
	w := newWorld(t)
	w.scaler(t, "example.com/v1", "CronTab", "")
	if got, want := conditions(w.settle(t)), unable+`no matches for kind "CronTab" in group "example.com"`; got != want {
		t.Errorf("the conditions are\n%s\nwant\n%s", got, want)
	}
	w.controller.catalog = steptest.Catalog{{Bucket: "example.com/crontabs", Group: "example.com", Version: "v1", Plural: "crontabs", Kind: "CronTab", Namespaced: true}}
	w.put(t, definitions, "crontabs.example.com", fmt.Sprintf(definition, "{}"))
	if got, want := conditions(w.settle(t)), unable+"the server could not find the requested resource"; got != want {
		t.Errorf("without a scale subresource the conditions are\n%s\nwant\n%s", got, want)
	}
	w.put(t, definitions, "crontabs.example.com", fmt.Sprintf(definition, "{scale: {specReplicasPath: .spec.size}}"))
	w.put(t, "example.com/crontabs", "default/web", "{spec: {size: 3}}")
	w.put(t, scalers, "default/a", string(w.store.Latest().Get(storage.Key{Bucket: scalers, Name: "default/a"}).Value))
	want := able + "\nScalingActive False InvalidSelector: the HPA target's scale is missing a selector"
	if status := w.settle(t); conditions(status) != want || status.CurrentReplicas != 3 {
		t.Errorf("%d replicas, and the conditions are\n%s\nwant 3 and\n%s", status.CurrentReplicas, conditions(status), want)
	}

	w = newWorld(t)
	w.scaler(t, "v1", "ConfigMap", "")
	if got, want := conditions(w.settle(t)), unable+"the server could not find the requested resource"; got != want {
		t.Errorf("for a kind that cannot be scaled the conditions are\n%s\nwant\n%s", got, want)
	}
	w = newWorld(t)
	w.scaler(t, "apps/v1beta1", "Deployment", "")
	w.deployment(t, 3)
	if got := conditions(w.settle(t)); got != able {
		t.Errorf("for another version of the kind the conditions are\n%s\nwant\n%s", got, able)
	}
}

// aggregating is a catalog with kinds of another server.
type aggregating struct {
	steptest.Catalog
	others step.Elsewhere
}

func (c *aggregating) Elsewhere() *step.Elsewhere { return &c.others }

// TestControllerScalesTargetsOfOtherServers by their scale, which it reads in every pass.
func TestControllerScalesTargetsOfOtherServers(t *testing.T) {
	t.Parallel()
	const (
		path   = "/apis/example.org/v1/namespaces/default/moons/web/scale"
		unable = "AbleToScale False FailedGetScale: the HPA controller was unable to get the target's current scale: "
		scale  = `{"metadata": {"name": "web", "namespace": "default", "resourceVersion": "r%d"}, "spec": {"replicas": %[1]d}, "status": {"replicas": 1, "selector": "app=web"}}`
	)
	w := newWorld(t)
	catalog := &aggregating{others: step.Elsewhere{Stale: []schema.GroupVersion{{Group: "example.org", Version: "v1"}}}}
	w.controller.catalog = catalog
	w.scaler(t, "example.org/v1", "Moon", "")
	if got, want := conditions(w.settle(t)), unable+`no matches for kind "Moon" in group "example.org"`; got != want {
		t.Errorf("while the server does not say what it serves the conditions are\n%s\nwant\n%s", got, want)
	}
	catalog.others = step.Elsewhere{
		Resources: []step.Resource{{Bucket: step.ElsewhereBucket("example.org", "moons"), Group: "example.org", Version: "v1", Plural: "moons", Kind: "Moon", Namespaced: true}},
		Kinds:     map[schema.GroupVersionKind]int{{Group: "example.org", Version: "v1", Kind: "Moon"}: 0},
	}
	const notToZero = "\nScaledToZero False NotScaledToZero: the HPA controller did not scale the workload to zero"
	for _, c := range []struct{ scale, want string }{
		{"", unable + "the server could not find the requested resource (get moons.example.org web)"},
		{fmt.Sprintf(scale, 9), "AbleToScale True SucceededRescale: the HPA controller was able to update the target scale to 5" + notToZero},
		{fmt.Sprintf(scale, 0), able + notToZero + "\nScalingActive False ScalingDisabled: scaling is disabled since the replica count of the target is zero"},
		{fmt.Sprintf(scale, 5), able + notToZero + "\nScalingActive False ScalingDisabled: scaling is disabled since the replica count of the target is zero"},
	} {
		if c.scale != "" {
			w.metrics[path] = c.scale
		}
		w.now = w.now.Add(period)
		if wake := w.controller.Wake(); !wake.Equal(w.now) {
			t.Errorf("the next step is at %v, want %v", wake, w.now)
		}
		r := w.step(t)
		if r != nil && strings.HasSuffix(r.Path, "/scale") {
			var sent autoscalingv1.Scale
			if err := json.Unmarshal(r.Body, &sent); err != nil {
				t.Fatal(err)
			}
			if r.Method != "PUT" || r.Path != path || sent.Spec.Replicas != 5 || sent.ResourceVersion != "r9" {
				t.Errorf("scaled by %s %s %s", r.Method, r.Path, r.Body)
			}
			// It is read again after a conflict.
			w.controller.Done(*r, apierrors.NewConflict(schema.GroupResource{Resource: "moons"}, "web", errors.New("changed")))
			w.metrics[path] = fmt.Sprintf(scale, 1)
			if r = w.step(t); r == nil || !strings.Contains(string(r.Body), `"replicas":2`) || !strings.Contains(string(r.Body), `"resourceVersion":"r1"`) {
				t.Fatalf("after a conflict the request is %+v", r)
			}
			w.controller.Done(*r, nil)
			if r = w.step(t); !strings.HasSuffix(r.Path, "/status") {
				t.Fatalf("after it was scaled the request is %+v", r)
			}
			c.want = strings.Replace(c.want, "to 5", "to 2", 1)
		}
		if r != nil {
			w.put(t, scalers, "default/a", string(r.Body))
			w.controller.Done(*r, nil)
		}
		if got := conditions(w.settle(t)); got != c.want {
			t.Errorf("the conditions are\n%s\nwant\n%s", got, c.want)
		}
	}
}

func TestControllerReportsMetricsThatItCannotRead(t *testing.T) {
	t.Parallel()
	const target = "target: {type: AverageValue, averageValue: '1'}"
	for metric, want := range map[string]string{
		"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}":                                 "FailedGetResourceMetric: the HPA was unable to compute the replica count: failed to get cpu utilization: ",
		"{type: Resource, resource: {name: cpu, " + target + "}}":                                                                      "FailedGetResourceMetric: the HPA was unable to compute the replica count: failed to get cpu usage: ",
		"{type: ContainerResource, containerResource: {name: memory, container: c, " + target + "}}":                                   "FailedGetContainerResourceMetric: the HPA was unable to compute the replica count: failed to get memory usage: ",
		"{type: Pods, pods: {metric: {name: hits}, " + target + "}}":                                                                   "FailedGetPodsMetric: the HPA was unable to compute the replica count: unable to get metric hits: ",
		"{type: Object, object: {describedObject: {kind: Service, name: s}, metric: {name: hits}, target: {type: Value, value: '1'}}}": "FailedGetObjectMetric: the HPA was unable to compute the replica count: unable to get metric hits on Service default/s: ",
		"{type: External, external: {metric: {name: queue}, " + target + "}}":                                                          "FailedGetExternalMetric: the HPA was unable to compute the replica count: unable to get external metric default/queue/nil: ",
		"{type: External, external: {metric: {name: q, selector: {matchLabels: {a: b}}}, " + target + "}}":                             "FailedGetExternalMetric: the HPA was unable to compute the replica count: unable to get external metric default/q/&LabelSelector{",
		"{type: Moon}": `InvalidMetricSourceType: the HPA was unable to compute the replica count: unknown metric source type "Moon"`,
	} {
		w := newWorld(t)
		w.scaler(t, "apps/v1", "Deployment", ", metrics: ["+metric+"]")
		w.deployment(t, 3)
		status := w.settle(t)
		if got := conditions(status); !strings.HasPrefix(got, able+"\nScalingActive False "+want) || len(status.CurrentMetrics) != 1 {
			t.Errorf("%s: %d metrics, and the conditions are\n%s\nwant\n%s", metric, len(status.CurrentMetrics), got, want)
		}
	}
}
