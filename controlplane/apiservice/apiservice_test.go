// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

const collection = "/apis/apiregistration.k8s.io/v1/apiservices"

func plane(t *testing.T, store storage.Store) *controlplane.Plane {
	t.Helper()
	p, err := controlplane.New(controlplane.Options{Store: store, ManualControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
	return p
}

// ask sends a request of the administrator.
func ask(t *testing.T, p *controlplane.Plane, method, path, contentType string, body []byte) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://plane.invalid"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if contentType != step.MergePatch {
		request.Header.Set("Accept", contentType)
	}
	response, err := p.RESTConfig().Transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

func TestBuiltInServicesAreRestoredAtTheNextStart(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	first := plane(t, store)
	if code, answer := ask(t, first, "DELETE", collection+"/v1.batch", step.JSON, nil); code != http.StatusOK {
		t.Fatalf("%d: %s", code, answer)
	}
	if code, answer := ask(t, first, "PATCH", collection+"/v1.apps", step.MergePatch, []byte(`{"spec":{"versionPriority":7}}`)); code != http.StatusOK {
		t.Fatalf("%d: %s", code, answer)
	}
	second := plane(t, store)
	for name, want := range map[string]int32{"v1.batch": 15, "v1.apps": 15, "v2.autoscaling": 30, "v1.": 1} {
		var got v1.APIService
		_, answer := ask(t, second, "GET", collection+"/"+name, step.JSON, nil)
		if err := json.Unmarshal(answer, &got); err != nil || got.Spec.VersionPriority != want {
			t.Errorf("%s: version priority %d, want %d (%v)", name, got.Spec.VersionPriority, want, err)
		}
	}
}

func TestAggregatedServicesSurviveARestart(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	const remote = `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.metrics.example.com"},
		"spec":{"group":"metrics.example.com","version":"v1","groupPriorityMinimum":100,"versionPriority":100,"service":{"namespace":"default","name":"metrics"}}}`
	if code, answer := ask(t, plane(t, store), "POST", collection, step.JSON, []byte(remote)); code != http.StatusCreated {
		t.Fatalf("%d: %s", code, answer)
	}
	if code, answer := ask(t, plane(t, store), "GET", "/apis/metrics.example.com/v1/nodes", step.JSON, nil); code != http.StatusServiceUnavailable {
		t.Errorf("%d: %s", code, answer)
	}
}

func TestServicesTravelAsProtobuf(t *testing.T) {
	t.Parallel()
	const media = "application/vnd.kubernetes.protobuf"
	sent := v1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.encoded.example.com"},
		Spec:       v1.APIServiceSpec{Group: "encoded.example.com", Version: "v1", GroupPriorityMinimum: 5, VersionPriority: 6},
	}
	raw, err := sent.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	code, answer := ask(t, plane(t, nil), "POST", collection, media, append([]byte("k8s\x00"), body...))
	if code != http.StatusCreated || !bytes.HasPrefix(answer, []byte("k8s\x00")) {
		t.Fatalf("%d: %q", code, answer)
	}
	var got v1.APIService
	if err := envelope.Unmarshal(answer[4:]); err != nil {
		t.Fatal(err)
	}
	if err := got.Unmarshal(envelope.Raw); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-sent +got):\n%s", diff)
	}
}

// TestIndexEqualsRebuild compares a controller that sees one
// write after the other with one that starts from what is stored.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	store := storage.NewMemory(storage.MemoryOptions{})
	cursor, err := store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	follows := apiservice.NewController()
	follows.Reset(store.Latest())
	for round := range 300 {
		group := "g" + strconv.Itoa(random.IntN(4)) + ".example.com"
		key := storage.Key{Bucket: apiservice.Bucket, Name: "v1." + group}
		switch random.IntN(5) {
		case 0, 1:
			definition := storage.Key{Bucket: crd.Bucket, Name: []string{"a.", "b."}[random.IntN(2)] + group}
			steptest.Put(t, store, definition, strings.NewReplacer("GROUP", group, "SERVED", []string{"true", "false"}[random.IntN(2)]).Replace(
				`{"kind":"CustomResourceDefinition","spec":{"group":"GROUP","names":{"plural":"as"},"versions":[{"name":"v1","served":SERVED,"schema":{"a":["b]"]}},`+
					`{"name":"v2","served":true}]}}`))
			if random.IntN(3) == 0 {
				_, _ = store.Commit(t.Context(), storage.Write{Key: definition, Expect: storage.AnyRevision})
			}
		case 2:
			_, _ = store.Commit(t.Context(), storage.Write{Key: key, Expect: storage.AnyRevision}) // it may not be there
		default:
			value := strings.NewReplacer("GROUP", group, "LABEL", []string{"true", "onstart"}[random.IntN(2)], "SERVICE",
				[]string{"", `"service":{"namespace":"default","name":"s"},`}[random.IntN(2)]).Replace(
				`{"kind":"APIService","metadata":{"name":"v1.GROUP","uid":"u","labels":{"kube-aggregator.kubernetes.io/automanaged":"LABEL"}},` +
					`"spec":{SERVICE"group":"GROUP","version":"v1","groupPriorityMinimum":1000,"versionPriority":100}}`)
			steptest.Put(t, store, key, value)
		}
		batch, err := cursor.Poll()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			steptest.Observe(follows, e)
		}
		view, now := store.Latest(), time.Unix(int64(round), 0)
		fresh := apiservice.NewController()
		fresh.Reset(view)
		all, some := fresh.Sync(view, now), follows.Sync(view, now)
		for _, r := range some {
			follows.Done(r, io.EOF) // so that it is looked at again
		}
		subjects := func(requests []step.Request) []string {
			var out []string
			for _, r := range requests {
				out = append(out, r.Method+" "+r.Path)
			}
			return out
		}
		if diff := cmp.Diff(subjects(all), subjects(some)); diff != "" {
			t.Fatalf("round %d (-from everything +from events):\n%s", round, diff)
		}
		if !slices.IsSortedFunc(all, func(a, b step.Request) int { return step.CompareKeys(a.Subject.Key, b.Subject.Key) }) {
			t.Fatal("the requests are not in order")
		}
	}
}
