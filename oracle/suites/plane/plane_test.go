// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// TestNamespacesAreMadeBeforeTheirObjects, once each, and not for reads.
func TestNamespacesAreMadeBeforeTheirObjects(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1}
	MakeNamespaces(config)
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	widgets := c.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	if _, err := widgets.Namespace("other").Get(context.Background(), "w", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := widgets.Namespace("one").Patch(context.Background(), "w", "application/merge-patch+json", []byte(`{}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const object = "/apis/example.com/v1/namespaces/one/widgets/w"
	want := []string{"GET " + strings.Replace(object, "one", "other", 1), "POST /api/v1/namespaces", "PATCH " + object, "PATCH " + object}
	if !slices.Equal(seen, want) {
		t.Errorf("the server was sent %q, want %q", seen, want)
	}
}
