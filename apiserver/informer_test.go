// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/steer-dev/steer/apiserver"
)

// lister is the part of the dynamic client and of the metadata client that an informer uses.
type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// follow starts an informer, made as the factories of client-go make theirs, and returns a
// function that lists what it has seen. The factories themselves link the types and listers of
// every built-in kind.
func follow[L runtime.Object](t *testing.T, ctx context.Context, client any, resource lister[L], example runtime.Object) func() []string {
	t.Helper()
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: resource.Watch,
	}, client), example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	var seen []string // only accessed while all goroutines are blocked
	name := func(obj any) string { m, _ := cache.MetaNamespaceKeyFunc(obj); return m }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen = append(seen, "add "+name(obj)) },
		UpdateFunc: func(_, obj any) { seen = append(seen, "update "+name(obj)) },
		DeleteFunc: func(obj any) { seen = append(seen, "delete "+name(obj)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx.Done()) }()
	t.Cleanup(func() { <-done })
	return func() []string { synctest.Wait(); return slices.Clone(seen) }
}

func TestInformersFollowCustomResources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		client := dynamicClient(t, s)
		c := client.Resource(widgets).Namespace("default")
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := c.Create(ctx, widget("a"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		dynamicSeen := follow(t, ctx, client, client.Resource(widgets), &unstructured.Unstructured{})
		meta, err := metadata.NewForConfig(config(s))
		if err != nil {
			t.Fatal(err)
		}
		metadataSeen := follow(t, ctx, meta, meta.Resource(widgets), &metav1.PartialObjectMetadata{})
		t.Cleanup(cancel)

		time.Sleep(time.Minute) // on the fake clock, beyond a bookmark
		if _, err := c.Create(ctx, widget("b"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":4}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"add default/a", "add default/b", "update default/a", "delete default/b"}
		for kind, seen := range map[string]func() []string{"dynamic": dynamicSeen, "metadata": metadataSeen} {
			if got := seen(); !slices.Equal(got, want) {
				t.Errorf("%s informer saw %v, want %v", kind, got, want)
			}
		}

		// Installing a new definition ends the watches; the informers continue.
		if err := s.Install(widgetResource()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := c.Create(ctx, widget("c"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want = append(want, "add default/c")
		for kind, seen := range map[string]func() []string{"dynamic": dynamicSeen, "metadata": metadataSeen} {
			if got := seen(); !slices.Equal(got, want) {
				t.Errorf("after a new definition the %s informer saw %v, want %v", kind, got, want)
			}
		}
	})
}

func TestBuiltInsTravelAsProtobuf(t *testing.T) {
	t.Parallel()
	rt := newServer(t).RoundTripper(admin)
	const path, proto = "/api/v1/namespaces/default/configmaps", "application/vnd.kubernetes.protobuf"
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"k": "v"}}
	inner, err := sent.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: inner}
	body, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	created := raw(t, rt, http.MethodPost, path, append([]byte("k8s\x00"), body...), "Content-Type", proto, "Accept", proto)
	list := raw(t, rt, http.MethodGet, path, nil, "Accept", proto)
	var got corev1.ConfigMap
	var all corev1.ConfigMapList
	for _, c := range []struct {
		data []byte
		kind string
		into interface{ Unmarshal([]byte) error }
	}{{created, "ConfigMap", &got}, {list, "ConfigMapList", &all}} {
		var u runtime.Unknown
		if err := u.Unmarshal(c.data[4:]); err != nil || u.Kind != c.kind || u.APIVersion != "v1" {
			t.Fatalf("envelope of %s: %+v, %v", c.kind, u.TypeMeta, err)
		}
		if err := c.into.Unmarshal(u.Raw); err != nil {
			t.Fatal(err)
		}
	}
	if got.UID == "" || got.Data["k"] != "v" || len(all.Items) != 1 || all.Items[0].UID != got.UID || all.ResourceVersion == "" {
		t.Errorf("created %v, listed %v", got, all)
	}
}

// TestSameSeedSameAnswers: the answers depend only on the seed, the clock and the
// requests.
func TestSameSeedSameAnswers(t *testing.T) {
	t.Parallel()
	var first string
	for round := range 20 {
		var text strings.Builder
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, func(o *apiserver.Options) { o.Entropy = apiserver.SeededEntropy(7) })
			rt := s.RoundTripper(admin)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://steer.invalid"+widgetsPath+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=90", nil)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				text.Write(raw(t, rt, http.MethodPost, widgetsPath, []byte(fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generateName":"w-","finalizers":["a.example.com/x"]},"spec":{"n":%d}}`, i))))
				time.Sleep(7 * time.Second)
			}
			text.Write(raw(t, rt, http.MethodDelete, widgetsPath, nil))
			text.Write(raw(t, rt, http.MethodGet, widgetsPath+"?limit=2", nil))
			var stream strings.Builder
			buffer := make([]byte, 4096)
			for {
				n, err := resp.Body.Read(buffer)
				stream.Write(buffer[:n])
				if err != nil {
					break
				}
			}
			_ = resp.Body.Close()
			text.WriteString(stream.String())
			for header, values := range resp.Header {
				if header == "Audit-Id" {
					text.WriteString(values[0])
				}
			}
		})
		if round == 0 {
			first = text.String()
			if !strings.Contains(first, "BOOKMARK") || strings.Count(first, "MODIFIED") != 5 {
				t.Fatalf("the script lacks events:\n%s", first)
			}
		} else if text.String() != first {
			t.Fatalf("round %d differs:\n%s\n---\n%s", round, first, text.String())
		}
	}
}
