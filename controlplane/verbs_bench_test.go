// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
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

// BenchmarkVerbs is what one write of a custom resource of 2 KB, or the creation of
// a Pod, costs from the request to the answer, without a network and without a disk.
func BenchmarkVerbs(b *testing.B) {
	const items = "/apis/bench.example.com/v1/namespaces/default/items"
	var payload strings.Builder
	for i := range 16 {
		fmt.Fprintf(&payload, `,{"name":"setting-%02d","value":%q}`, i, strings.Repeat("v", 80))
	}
	object := func(name string, i int) string {
		return fmt.Sprintf(`{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":%q,"labels":{"app":"bench"}},`+
			`"spec":{"replicas":%d,"image":"registry.example.com/app:1.2.3","payload":[%s]}}`, name, i, payload.String()[1:])
	}
	for _, verb := range []struct {
		name, method, kind string
		request            func(i int) (path, body string)
	}{
		{"create", http.MethodPost, "application/json", func(i int) (string, string) { return items, object(fmt.Sprint("new-", i), i) }},
		{"patch", http.MethodPatch, "application/merge-patch+json", func(i int) (string, string) {
			return items + "/there", fmt.Sprintf(`{"spec":{"replicas":%d}}`, i+10)
		}},
		{"status", http.MethodPatch, "application/merge-patch+json", func(i int) (string, string) {
			return items + "/there/status", fmt.Sprintf(`{"status":{"ready":%d}}`, i+10)
		}},
		{"apply", http.MethodPatch, "application/apply-patch+yaml", func(i int) (string, string) {
			return items + "/there?fieldManager=bench&force=true",
				fmt.Sprintf(`{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":"there"},"spec":{"image":"app:%d"}}`, i)
		}},
		{"pod", http.MethodPost, "application/json", func(i int) (string, string) {
			return "/api/v1/namespaces/default/pods", benchmarkPod(fmt.Sprint("new-", i), i)
		}},
	} {
		b.Run(verb.name, func(b *testing.B) {
			plane, err := controlplane.New(controlplane.Options{ManualControllers: true})
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := plane.Stop(context.Background()); err != nil {
					b.Error(err)
				}
			}()
			client := &http.Client{Transport: plane.RESTConfig().Transport}
			base := plane.RESTConfig().Host
			send := func(method, path, kind, body string) {
				request, err := http.NewRequestWithContext(b.Context(), method, base+path, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				request.Header.Set("Content-Type", kind)
				response, err := client.Do(request)
				if err != nil {
					b.Fatal(err)
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode >= 300 {
					b.Fatalf("%s %s: %s: %s, %v", method, path, response.Status, text, err)
				}
			}
			send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", benchmarkDefinition)
			send(http.MethodPost, items, "application/json", object("there", 1))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				path, body := verb.request(i)
				send(verb.method, path, verb.kind, body)
			}
		})
	}
}
