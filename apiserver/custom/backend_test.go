// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apiservertest"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
)

var notesInV1 = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "notes"}

// shelved returns a server of notes on a shelf.
func shelved(t *testing.T) *apiserver.Server {
	t.Helper()
	server, err := apiserver.New(apiserver.Options{Store: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	notes, err := custom.Kind[*Note]{Definition: definition, Backend: newShelf()}.Resource()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestShelvedNotesConform(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		return apiservertest.Subject{
			Server: shelved(t), Resource: notesInV1,
			Object: func() map[string]any { return map[string]any{"spec": map[string]any{"text": "x"}} },
		}
	})
}

// recorder passes requests on and keeps their verbs.
type recorder struct {
	http.RoundTripper
	mu    sync.Mutex
	reads []string
}

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodGet {
		r.mu.Lock()
		r.reads = append(r.reads, "watch="+q.URL.Query().Get("watch")+" sendInitialEvents="+q.URL.Query().Get("sendInitialEvents"))
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(q)
}

// TestInformersStartOnABackendWithOneWatch: those of client-go ask for the initial events, and
// wait for the bookmark that ends them.
func TestInformersStartOnABackendWithOneWatch(t *testing.T) {
	t.Parallel()
	server := shelved(t)
	through := &recorder{RoundTripper: server.RoundTripper(&auth.User{Name: "ann", Groups: []string{auth.Masters}})}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "https://in-process", Transport: through})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		t.Helper()
		note := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Note", "metadata": map[string]any{"name": name}, "spec": map[string]any{"text": "x"},
		}}
		if _, err := client.Resource(notesInV1).Namespace("default").Create(t.Context(), note, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	// As the factory of client-go makes it, which links the types of every built-in kind.
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(notesInV1).List(ctx, o)
		},
		WatchFuncWithContext: client.Resource(notesInV1).Watch,
	}, client), &unstructured.Unstructured{}, 0, nil)
	added := make(chan string, 8)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { added <- obj.(metav1.Object).GetName() }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer has not synced")
	}
	create("b")
	if got := []string{<-added, <-added}; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("added: %v", got)
	}
	through.mu.Lock()
	defer through.mu.Unlock()
	if want := []string{"watch=true sendInitialEvents=true"}; !slices.Equal(through.reads, want) {
		t.Errorf("the informer has sent %q, want %q", through.reads, want)
	}
}
