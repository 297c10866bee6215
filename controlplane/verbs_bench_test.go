// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane"
)

const benchmarkDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"items.bench.example.com"},"spec":{"group":"bench.example.com","scope":"Namespaced",
"names":{"plural":"items","singular":"item","kind":"Item"},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"replicas":{"type":"integer"},"image":{"type":"string"},
"payload":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}},
"status":{"type":"object","properties":{"ready":{"type":"integer"},"phase":{"type":"string"}}}}}}}]}}`

// benchmarkPod is a Pod of 6 KB once it is stored: two containers with settings,
// probes and limits.
func benchmarkPod(name string, i int) string {
	const settings = `"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"REGION","value":"eu-west-1"},{"name":"DATABASE","value":"postgres://db.default.svc:5432/app"},` +
		`{"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"app","key":"token"}}}],` +
		`"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"256Mi"}},"ports":[{"name":"http","containerPort":8080}],` +
		`"volumeMounts":[{"name":"config","mountPath":"/etc/app"},{"name":"cache","mountPath":"/var/cache/app"}]`
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default",`+
		`"labels":{"app.kubernetes.io/name":"app-%d","app.kubernetes.io/version":"1.2.3","pod-template-hash":"5d4f8c7b9d"},`+
		`"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"8080"}},`+
		`"spec":{"automountServiceAccountToken":false,"serviceAccountName":"default","nodeSelector":{"kubernetes.io/os":"linux"},"containers":[`+
		`{"name":"app","image":"registry.example.com/team/app:1.2.3","args":["--listen=:8080","--config=/etc/app/config.yaml"],`+
		`"livenessProbe":{"httpGet":{"path":"/healthz","port":"http"},"periodSeconds":20},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http"}},%s},`+
		`{"name":"proxy","image":"registry.example.com/mesh/proxy:2.0.1",%s}],`+
		`"volumes":[{"name":"config","configMap":{"name":"app"}},{"name":"cache","emptyDir":{}}]}}`,
		name, i%50, settings, settings)
}

// benchmarkKind is a kind whose requests are measured.
type benchmarkKind struct {
	name, path string // the path has the place of a namespace
	object     func(name string, i int) string
	// change and status are merge patches that set a number, changed is the number in an answer;
	// a kind without status has none.
	change, changed, status string
	// configuration is what is applied: the number of an object and another one.
	configuration string
}

func benchmarkKinds() []benchmarkKind {
	const annotated, annotation = `{"metadata":{"annotations":{"bench.example.com/n":"%d"}}}`, `"bench.example.com/n":"%d"`
	value := strings.Repeat("v", 80)
	var payload, data strings.Builder
	for i := range 16 {
		fmt.Fprintf(&payload, `,{"name":"setting-%02d","value":%q}`, i, value)
	}
	for i := range 8 {
		fmt.Fprintf(&data, `,"setting-%02d":%q`, i, value)
	}
	pod := benchmarkPod("template", 0)
	podSpec := pod[strings.Index(pod, `"spec":{`)+len(`"spec":`) : len(pod)-1]
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"labels":{"app":"bench"}},"spec":{"replicas":3,` +
		`"selector":{"matchLabels":{"app":"bench"}},"template":{"metadata":{"labels":{"app":"bench"},"annotations":{"bench.example.com/n":"%d"}},"spec":`
	return []benchmarkKind{
		{
			name: "custom", path: "/apis/bench.example.com/v1/namespaces/%s/items",
			object: func(name string, i int) string {
				return fmt.Sprintf(`{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":%q,"labels":{"app":"bench"}},`+
					`"spec":{"replicas":%d,"image":"registry.example.com/app:1.2.3","payload":[%s]}}`, name, i, payload.String()[1:])
			},
			change: `{"spec":{"replicas":%d}}`, changed: `"replicas":%d`, status: `{"status":{"ready":%d}}`,
			configuration: `{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":%q},"spec":{"image":"app:%d"}}`,
		},
		{
			name: "pod", path: "/api/v1/namespaces/%s/pods",
			object: func(name string, i int) string {
				return strings.Replace(benchmarkPod(name, i), `"namespace":"default",`, "", 1)
			},
			change: annotated, changed: annotation, status: `{"status":{"phase":"Running","message":"%d"}}`,
			configuration: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"annotations":{"bench.example.com/applied":"%d"}},` +
				`"spec":{"containers":[{"name":"app","image":"registry.example.com/team/app:1.2.3"}]}}`,
		},
		{
			name: "deployment", path: "/apis/apps/v1/namespaces/%s/deployments",
			object: func(name string, i int) string { return fmt.Sprintf(deployment, name, i) + podSpec + `}}}` },
			change: `{"spec":{"replicas":%d}}`, changed: `"replicas":%d`, status: `{"status":{"observedGeneration":%d}}`,
			configuration: deployment + strings.ReplaceAll(podSpec, "%", "%%") + `}}}`,
		},
		{
			name: "configmap", path: "/api/v1/namespaces/%s/configmaps",
			object: func(name string, _ int) string {
				return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench"}},"data":{%s}}`, name, data.String()[1:])
			},
			change: annotated, changed: annotation,
			configuration: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"setting-00":"v","applied":"%d"}}`,
		},
	}
}

// BenchmarkVerbs is what a request costs from its beginning to the answer, without a network
// and without a disk, of a custom kind of 2 KB, of Pods, Deployments and ConfigMaps of 1 KB:
// create, update, merge patch, status patch, apply, a list of 50 objects, and a patch that a
// watch is sent. bench/regress records what they allocate.
func BenchmarkVerbs(b *testing.B) {
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := plane.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	s := &benchmarkSender{client: &http.Client{Transport: plane.RESTConfig().Transport}, base: plane.RESTConfig().Host}
	s.send(b, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", benchmarkDefinition)
	for _, namespace := range []string{"listed", "watched"} {
		s.send(b, http.MethodPost, "/api/v1/namespaces", "application/json", fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace))
	}
	for _, kind := range benchmarkKinds() {
		b.Run(kind.name, func(b *testing.B) { s.verbs(b, kind) })
	}
}

// benchmarkSender sends requests in process. Its number makes each differ from the ones before.
type benchmarkSender struct {
	client *http.Client
	base   string
	n      int
}

func (s *benchmarkSender) begin(ctx context.Context, b *testing.B, method, path, kind, body string) *http.Response {
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	response, err := s.client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	return response
}

func (s *benchmarkSender) send(b *testing.B, method, path, kind, body string) string {
	response := s.begin(b.Context(), b, method, path, kind, body)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		b.Fatalf("%s %s: %s: %s, %v", method, path, response.Status, text, err)
	}
	return string(text)
}

func (s *benchmarkSender) verbs(b *testing.B, kind benchmarkKind) {
	const json, merge, apply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
	in := func(namespace string) string { return fmt.Sprintf(kind.path, namespace) }
	there := in("default") + "/there"
	s.send(b, http.MethodPost, in("default"), json, kind.object("there", 1))
	s.send(b, http.MethodPost, in("watched"), json, kind.object("there", 1))
	for i := range 50 {
		s.send(b, http.MethodPost, in("listed"), json, kind.object(fmt.Sprint("listed-", i), i))
	}
	run := func(name string, do func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.n++
				do(s.n + 1_000_000) // always as many digits
			}
		})
	}
	run("create", func(i int) { s.send(b, http.MethodPost, in("default"), json, kind.object(fmt.Sprint("new-", i), i)) })
	last, at := s.send(b, http.MethodPatch, there, merge, fmt.Sprintf(kind.change, 1_000_000)), 1_000_000
	run("update", func(i int) {
		body := strings.Replace(last, fmt.Sprintf(kind.changed, at), fmt.Sprintf(kind.changed, i), 1)
		last, at = s.send(b, http.MethodPut, there, json, body), i
	})
	run("patch", func(i int) { s.send(b, http.MethodPatch, there, merge, fmt.Sprintf(kind.change, i)) })
	if kind.status != "" {
		run("status", func(i int) { s.send(b, http.MethodPatch, there+"/status", merge, fmt.Sprintf(kind.status, i)) })
	}
	run("apply", func(i int) {
		s.send(b, http.MethodPatch, there+"?fieldManager=bench&force=true", apply, fmt.Sprintf(kind.configuration, "there", i))
	})
	run("list", func(int) { s.send(b, http.MethodGet, in("listed"), json, "") })
	b.Run("watch", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		stream := s.begin(ctx, b, http.MethodGet, in("watched")+"?watch=true", json, "")
		defer stream.Body.Close()
		events := bufio.NewScanner(stream.Body)
		events.Buffer(make([]byte, 64<<10), 64<<10)
		if !events.Scan() { // the object as it is
			b.Fatal(events.Err())
		}
		b.ReportAllocs()
		for b.Loop() {
			s.n++
			s.send(b, http.MethodPatch, in("watched")+"/there", merge, fmt.Sprintf(kind.change, s.n+1_000_000))
			if !events.Scan() {
				b.Fatal(events.Err())
			}
		}
	})
}
