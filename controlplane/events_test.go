// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane"
)

const (
	coreEvents  = "/api/v1/namespaces/default/events"
	namedEvents = "/apis/events.k8s.io/v1/namespaces/default/events"
)

func namedEvent(name string) string {
	return `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: ` + name + `}, eventTime: "2026-01-01T00:00:00.000000Z",
  reportingController: example.com/ctl, reportingInstance: one, action: Doing, reason: Because, type: Normal, note: a note,
  regarding: {apiVersion: v1, kind: ConfigMap, namespace: default, name: subject}}`
}

func TestEventsOfBothGroupsAreTheSameObjects(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	type change struct {
		Type   string
		Object struct {
			APIVersion, Note, Message string
			Metadata                  struct{ Name, ResourceVersion, UID string }
		}
	}
	var streams [2]*json.Decoder
	for i, path := range []string{coreEvents, namedEvents} {
		answer := api.open(t.Context(), http.MethodGet, path+"?watch=1&resourceVersion=0", "")
		defer func() { _ = answer.Body.Close() }()
		streams[i] = json.NewDecoder(answer.Body)
	}
	next := func(kind string) {
		t.Helper()
		var seen [2]change
		for i := range seen {
			if err := streams[i].Decode(&seen[i]); err != nil {
				t.Fatal(err)
			}
		}
		core, named := seen[0], seen[1]
		equal(t, "types", [2]string{kind, kind}, [2]string{core.Type, named.Type})
		equal(t, "versions", [2]string{"v1", "events.k8s.io/v1"}, [2]string{core.Object.APIVersion, named.Object.APIVersion})
		equal(t, "metadata", core.Object.Metadata, named.Object.Metadata)
		equal(t, "text", core.Object.Message, named.Object.Note)
	}
	api.must("POST", namedEvents, namedEvent("one"))
	next("ADDED")
	api.must("PATCH", coreEvents+"/one", `{"message": "another"}`)
	next("MODIFIED")
	api.must("DELETE", namedEvents+"/one", "")
	next("DELETED")
}

func TestEventsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane, err := controlplane.New(controlplane.Options{Entropy: apiserver.SeededEntropy(1)})
		if err != nil {
			t.Fatal(err)
		}
		if err := plane.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		api := apiOf(t, plane.RESTConfig())
		api.must("POST", namedEvents, namedEvent("once"))
		api.must("POST", namedEvents, namedEvent("repeated"))
		left := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			equal(t, what, want, api.names(coreEvents))
		}
		for i := range 3 { // the same fields every time, by the same manager
			time.Sleep(19 * time.Minute)
			api.must("PATCH", namedEvents+"/repeated", `{"series": {"count": `+string(rune('2'+i))+`, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}`)
		}
		left("before the hour is over", "once", "repeated")
		time.Sleep(4 * time.Minute)
		left("after an hour", "repeated")
		time.Sleep(time.Hour)
		left("an hour after the last write")
		if err := plane.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}
