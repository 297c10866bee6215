// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkWebhooks measures what webhooks add to an update of a ConfigMap: many that do
// not concern it, many whose selectors do not match, and one that does nothing, in this
// process and over TLS on loopback.
func BenchmarkWebhooks(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkUpdates(b, "") })
	b.Run("1000 configurations for other resources", func(b *testing.B) {
		benchmarkUpdates(b, "1000")
	})
	b.Run("100 selectors that do not match", func(b *testing.B) { benchmarkUpdates(b, "100") })
	b.Run("one in process", func(b *testing.B) { benchmarkUpdates(b, "one") })
	b.Run("one over TLS", func(b *testing.B) { benchmarkUpdates(b, "tls") })
}

func benchmarkUpdates(b *testing.B, webhooks string) {
	_, api, h := hookedPlane(b)
	h.on("/noop", allow)
	switch webhooks {
	case "1000":
		for i := range 1000 {
			api.must("POST", mutatingPath, configuration(mutatingKind, fmt.Sprintf("other-%d", i),
				fmt.Sprintf(`{operations: ["*"], apiGroups: [g%d.example.com], apiVersions: [v1], resources: ["*"]}`, i)))
		}
	case "100":
		for i := range 100 {
			selects := "objectSelector"
			if i%2 == 0 {
				selects = "namespaceSelector"
			}
			kind, path := mutatingKind, mutatingPath
			if i%4 < 2 {
				kind, path = validatedKind, validatePath
			}
			api.must("POST", path, configuration(kind, fmt.Sprintf("selects-%d", i), onConfigMaps, selects+": {matchLabels: {no: other}}"))
		}
	case "one":
		api.must("POST", validatePath, configuration(validatedKind, "noop", onConfigMaps))
	case "tls":
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response, err := h.RoundTrip(r)
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, response.Body)
		}))
		b.Cleanup(server.Close)
		bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		api.must("POST", validatePath, strings.Replace(configuration(validatedKind, "noop", onConfigMaps),
			"{service: {namespace: default, name: hooks, path: /noop}}", fmt.Sprintf("{url: %s/noop, caBundle: %s}", server.URL, bundle), 1))
	}
	api.must("POST", configMaps, labelled("x", "app: x"))
	body := func(i int) string { return fmt.Sprintf("data: {n: '%d'}", i) }
	api.must("PATCH", configMaps+"/x", body(-1))
	i := 0
	for b.Loop() {
		api.must("PATCH", configMaps+"/x", body(i))
		i++
	}
}
