// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
)

// auditIDs are the ids that requests carried, by what they asked for.
type auditIDs struct {
	http.RoundTripper
	mu   sync.Mutex
	seen map[string]string
}

func (a *auditIDs) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(r)
	if id := r.Header.Get("Audit-ID"); id != "" && err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen[r.Method+" "+r.URL.Path] = id
		if got := response.Header.Get("Audit-ID"); got != id {
			a.seen[r.Method+" "+r.URL.Path] = "answered as " + got
		}
	}
	return response, err
}

// TestWritesTellTheirFieldsAndCarryTheReconcile in the header Audit-ID.
func TestWritesTellTheirFieldsAndCarryTheReconcile(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	ids := &auditIDs{seen: map[string]string{}}
	env.Config = rest.CopyConfig(env.Config)
	env.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		ids.RoundTripper = next
		return ids
	})
	page := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "page", Namespace: "default"}, Data: map[string]string{"text": text, "other": "o"}}
	}
	var recorder *trace.Recorder
	start(t, env, func(m controller.Manager) error {
		recorder = m.Deps().Trace
		c := m.Deps().Client
		reconcile := func(ctx context.Context, w *Web) (controller.Result, error) {
			made := page("one")
			if err := c.Create(ctx, made); err != nil {
				return controller.Done(), controller.Terminal(err)
			}
			made.Data["text"] = "two"
			if err := c.Update(ctx, made); err != nil {
				return controller.Done(), controller.Terminal(err)
			}
			made.ResourceVersion = "" // an update of whatever there is
			made.Data["text"] = "three"
			if err := c.Update(ctx, made); err != nil {
				return controller.Done(), controller.Terminal(err)
			}
			if err := c.Apply(ctx, page("four"), client.FieldOwner("o"), client.ForceOwnership); err != nil {
				return controller.Done(), controller.Terminal(err)
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"data":{"other":null}}`))
			if err := c.Patch(ctx, page(""), patch); err != nil {
				return controller.Done(), controller.Terminal(err)
			}
			w.Status.Ready = 3
			return controller.Done(), nil
		}
		return controller.Add(m, controller.Func[*Web](reconcile), controller.Owns[*corev1.ConfigMap]())
	})
	records := recorder.Follow(t.Context())
	create(t, env, &Web{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}})
	var record trace.Record
	for record = range records {
		break
	}
	var got []string
	for _, w := range record.Writes {
		if w.Error != "" || w.Revision == "" {
			t.Errorf("%v: %s", w, w.Error)
		}
		got = append(got, w.Verb.String()+" "+w.Kind+": "+w.Changed)
	}
	want := []string{
		"create ConfigMap: ", "update ConfigMap: data.text", "update ConfigMap: ", "apply ConfigMap: data.text",
		"patch ConfigMap: metadata.labels[a],data.other", "patch Web: status.observedGeneration,status.ready",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	for _, request := range []string{"POST /api/v1/namespaces/default/configmaps", "PUT /api/v1/namespaces/default/configmaps/page", "PATCH /apis/example.com/v1/namespaces/default/webs/a/status"} {
		if id := ids.seen[request]; id != record.ID.String() {
			t.Errorf("%s has the id %q, not %s", request, id, record.ID)
		}
	}
}
