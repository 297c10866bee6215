// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver"
)

// bulk makes a widget of about 2 KB.
func bulk(name string) *unstructured.Unstructured {
	return widget(name, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app": "web", "shard": name[len(name)-1:]})
		items := make([]any, 16)
		for i := range items {
			items[i] = map[string]any{"name": fmt.Sprintf("item-%d", i), "value": strings.Repeat("x", 64), "count": int64(i)}
		}
		_ = unstructured.SetNestedSlice(u.Object, items, "spec", "items")
	})
}

// raw sends one request in process and reads the whole answer.
func raw(tb testing.TB, rt http.RoundTripper, method, path string, body []byte, header ...string) []byte {
	tb.Helper()
	r, err := http.NewRequest(method, "https://steer.invalid"+path, bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		tb.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, data)
	}
	return data
}

const widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

func fill(tb testing.TB, s *apiserver.Server, n int) {
	tb.Helper()
	rt := s.RoundTripper(admin)
	for i := range n {
		body, err := json.Marshal(bulk(fmt.Sprintf("w-%05d", i)))
		if err != nil {
			tb.Fatal(err)
		}
		raw(tb, rt, http.MethodPost, widgetsPath, body)
	}
}

func BenchmarkGet(b *testing.B) {
	s := newServer(b)
	fill(b, s, 1000)
	rt := s.RoundTripper(admin)
	b.ReportAllocs()
	for b.Loop() {
		raw(b, rt, http.MethodGet, widgetsPath+"/w-00500", nil)
	}
}

func BenchmarkList4000(b *testing.B) {
	s := newServer(b)
	fill(b, s, 4000)
	rt := s.RoundTripper(admin)
	for name, query := range map[string]string{"all": "", "label": "?labelSelector=shard%3D7", "field": "?fieldSelector=spec.colour%3Dblue"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				raw(b, rt, http.MethodGet, widgetsPath+query, nil)
			}
		})
	}
	const v2 = "/apis/example.com/v2/namespaces/default/widgets"
	b.Run("other-version", func(b *testing.B) {
		raw(b, rt, http.MethodGet, v2, nil)
		b.ReportAllocs()
		for b.Loop() {
			raw(b, rt, http.MethodGet, v2, nil)
		}
	})
	b.Run("other-version-forgotten", func(b *testing.B) {
		forgetful := newServer(b, func(o *apiserver.Options) { o.CacheBytes = -1 })
		fill(b, forgetful, 4000)
		rt := forgetful.RoundTripper(admin)
		b.ReportAllocs()
		for b.Loop() {
			raw(b, rt, http.MethodGet, v2, nil)
		}
	})
	b.Run("metadata-protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			raw(b, rt, http.MethodGet, widgetsPath, nil, "Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	s := newServer(b)
	rt := s.RoundTripper(admin)
	body, err := json.Marshal(bulk("name-name"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		named := bytes.Replace(body, []byte("name-name"), []byte(fmt.Sprintf("n%08d", i)), 1)
		raw(b, rt, http.MethodPost, widgetsPath, named)
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, step := range map[string]struct{ method, path, mediaType, body string }{
		"merge-patch": {http.MethodPatch, "", "application/merge-patch+json", `{"spec":{"n":%d}}`},
		"status":      {http.MethodPatch, "/status", "application/merge-patch+json", `{"status":{"n":%d}}`},
		"apply":       {http.MethodPatch, "?fieldManager=bench&force=true", "application/apply-patch+yaml", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w-00000"},"spec":{"n":%d}}`},
	} {
		b.Run(name, func(b *testing.B) {
			s := newServer(b)
			fill(b, s, 1)
			rt := s.RoundTripper(admin)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				raw(b, rt, step.method, widgetsPath+"/w-00000"+step.path, []byte(fmt.Sprintf(step.body, i)), "Content-Type", step.mediaType)
			}
		})
	}
}

// BenchmarkWatch measures one write and its delivery to many watchers.
func BenchmarkWatch(b *testing.B) {
	for _, watchers := range []int{1, 20, 200} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			s := newServer(b)
			fill(b, s, 1)
			rt := s.RoundTripper(admin)
			events := make(chan struct{}, watchers)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range watchers {
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid"+widgetsPath+"?watch=true&resourceVersion=1", nil)
				resp, err := rt.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				go func() {
					buffer := make([]byte, 64<<10)
					for {
						n, err := resp.Body.Read(buffer)
						for range bytes.Count(buffer[:n], []byte("\n")) {
							events <- struct{}{}
						}
						if err != nil {
							return
						}
					}
				}()
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				raw(b, rt, http.MethodPatch, widgetsPath+"/w-00000", []byte(fmt.Sprintf(`{"spec":{"n":%d}}`, i)), "Content-Type", "application/merge-patch+json")
				for range watchers {
					<-events
				}
			}
		})
	}
}
