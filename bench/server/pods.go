// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/steer-dev/steer/bench/report"
)

const podGroup = "pods"

// PodScale says how much work a run of group pods does.
type PodScale struct {
	// Rounds is how often each side runs; the sides take turns.
	Rounds int
	// Pods is how many there are, Writes how many more a crowd of watchers sees.
	Pods, Writes int
}

// FullPods is the scale of published figures, QuickPods that of a look in between.
func FullPods() PodScale { return PodScale{Rounds: 1, Pods: 10_000, Writes: 600} }

// QuickPods is a tenth of it.
func QuickPods() PodScale { return PodScale{Rounds: 1, Pods: 1000, Writes: 150} }

// protobufType is what Kubernetes' own clients ask for; a watch comes as frames
// with their length in front.
const (
	protobufType      = "application/vnd.kubernetes.protobuf"
	protobufWatchType = protobufType + ";stream=watch"
)

// media are the ways in which Pods are read.
type media struct {
	name, list string
	watch      load
}

func podMedia() []media {
	const collection = "/api/v1/namespaces/default/pods"
	return []media{
		{"JSON", jsonType, load{collection, jsonType, bufio.ScanLines, pod}},
		{"protobuf", protobufType, load{collection, protobufWatchType, scanFrames, pod}},
	}
}

// scanFrames splits a stream of frames that begin with their length.
func scanFrames(data []byte, _ bool) (advance int, token []byte, err error) {
	if len(data) < 4 {
		return 0, nil, nil
	}
	end := 4 + int(binary.BigEndian.Uint32(data))
	if len(data) < end {
		return 0, nil, nil
	}
	return end, data[4:end], nil
}

// pod returns a Pod as a Deployment makes them, but for an owner, which is not
// there: two containers with settings, probes and limits. It has no token, so that
// both sides store the same whether Pods are given accounts or not.
func pod(name string, i int, text string) []byte {
	const settings = `"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"REGION","value":"eu-west-1"},{"name":"DATABASE","value":"postgres://db.default.svc:5432/app"},` +
		`{"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"app","key":"token"}}}],` +
		`"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"256Mi"}},"ports":[{"name":"http","containerPort":8080}],` +
		`"volumeMounts":[{"name":"config","mountPath":"/etc/app"},{"name":"cache","mountPath":"/var/cache/app"}]`
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default",`+
		`"labels":{"app.kubernetes.io/name":"app-%d","app.kubernetes.io/version":"1.2.3","pod-template-hash":"5d4f8c7b9d"},`+
		`"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"8080"}},`+
		`"spec":{"automountServiceAccountToken":false,"serviceAccountName":"default","nodeSelector":{"kubernetes.io/os":"linux"},"containers":[`+
		`{"name":"app","image":"%sregistry.example.com/team/app:1.2.3","args":["--listen=:8080","--config=/etc/app/config.yaml"],`+
		`"livenessProbe":{"httpGet":{"path":"/healthz","port":"http"},"periodSeconds":20},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http"}},%s},`+
		`{"name":"proxy","image":"registry.example.com/mesh/proxy:2.0.1",%s}],`+
		`"volumes":[{"name":"config","configMap":{"name":"app"}},{"name":"cache","emptyDir":{}}]}}`,
		name, i%50, text, settings, settings)
}

// RunPods measures lists, watches and memory of many Pods on both sides in turn.
// A nil upstream is left out.
func RunPods(ctx context.Context, out *report.Report, log io.Writer, steer, upstream Subject, scale PodScale) error {
	for round := range out.Turns(ctx, podGroup, scale.Rounds) {
		for _, side := range sides(steer, upstream) {
			fmt.Fprintf(log, "pods: round %d, %s\n", round+1, side.name)
			add := func(name, unit string, better report.Direction, value float64) {
				out.Add(podGroup, name, unit, better, side.name, value)
			}
			if err := measurePods(ctx, add, side.subject, scale); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	for _, m := range podMedia() {
		for _, name := range []string{"list", "consistent list"} {
			out.Expect(podGroup, fmt.Sprintf("%s of %d, %s, 16 clients, median", name, scale.Pods, m.name), report.Goal{Times: 8})
		}
		for _, watchers := range podWatchers() {
			who := fmt.Sprintf("%d watchers, %s", watchers, m.name)
			if watchers >= 200 {
				out.Expect(podGroup, who+": server CPU per event", report.Goal{Times: 4})
			}
			out.Expect(podGroup, who+": lag p99", report.Goal{Times: 5})
		}
	}
	out.Expect(podGroup, memoryName(scale.Pods), report.Goal{AtMost: 2.5})
	out.Expect(podGroup, memoryName(scale.Pods)+afterwards, report.Goal{AtMost: 2.5})
	return nil
}

// podWatchers are the crowds that watch Pods.
func podWatchers() []int { return []int{20, 200} }

// afterwards is said of what is measured when lists and watches have left what they
// leave.
const afterwards = ", after lists and watches"

func memoryName(pods int) string {
	return fmt.Sprintf("%d Pods: resident memory per byte of JSON", pods)
}

func measurePods(ctx context.Context, add adder, subject Subject, scale PodScale) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	clients, done := instance.NewClients(16)
	defer done()
	if err := leave(ctx, quiet); err != nil {
		return err
	}
	collection := podMedia()[0].watch.collection
	before := use(instance.PIDs)
	result, err := drive(ctx, clients, scale.Pods, func(ctx context.Context, c *Client, i int) error {
		return send(ctx, c, http.MethodPost, collection, jsonType, pod(name("pod", i), i, ""))
	})
	if err != nil {
		return err
	}
	add("create, 16 clients", "ops/s", report.Higher, result.rate)
	add("create, 16 clients, server CPU per request", "µs", report.Lower, float64((use(instance.PIDs).cpu-before.cpu).Microseconds())/float64(scale.Pods))
	if err := leave(ctx, quiet); err != nil {
		return err
	}
	one, err := clients[0].Do(ctx, http.MethodGet, collection+"/"+name("pod", 1), "", nil)
	if err != nil {
		return err
	}
	add("one Pod, JSON", "bytes", report.Lower, float64(len(one)))
	weight := float64(len(one)) * float64(scale.Pods)
	add(memoryName(scale.Pods), "", report.Lower, use(instance.PIDs).resident/weight)
	for _, m := range podMedia() {
		if err := measurePodLists(ctx, add, instance, clients, m, scale.Pods); err != nil {
			return err
		}
	}
	for _, m := range podMedia() {
		for _, watchers := range podWatchers() {
			if err := measureWatch(ctx, add, instance, m.watch, fmt.Sprintf("%d watchers, %s", watchers, m.name), watchers, scale.Writes); err != nil {
				return err
			}
		}
	}
	if err := leave(ctx, quiet); err != nil {
		return err
	}
	weight += float64(len(one)) * float64(2*len(podWatchers())*scale.Writes)
	add(memoryName(scale.Pods)+afterwards, "", report.Lower, use(instance.PIDs).resident/weight)
	return nil
}

// measurePodLists lists all Pods: once, and then by sixteen clients at once.
func measurePodLists(ctx context.Context, add adder, instance *Instance, clients []*Client, m media, pods int) error {
	for _, c := range clients {
		c.accept = m.list
		defer func() { c.accept = jsonType }()
	}
	for _, list := range []struct {
		name, query string
		clients     int
		lists       int
	}{
		{"first list", "?resourceVersion=0", 1, 1},
		{"list", "?resourceVersion=0", 16, 32},
		{"consistent list", "", 16, 32},
	} {
		before := use(instance.PIDs)
		result, err := drive(ctx, clients[:list.clients], list.lists, func(ctx context.Context, c *Client, _ int) error {
			_, err := c.Drain(ctx, m.watch.collection+list.query)
			return err
		})
		what := fmt.Sprintf("%s of %d, %s", list.name, pods, m.name)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if list.clients > 1 {
			what += fmt.Sprintf(", %d clients", list.clients)
		}
		add(what+", median", "ms", report.Lower, result.percentile(0.5))
		add(what+", server CPU", "ms", report.Lower, float64((use(instance.PIDs).cpu-before.cpu).Milliseconds())/float64(list.lists))
	}
	return nil
}
