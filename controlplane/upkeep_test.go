// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

const (
	theService = "/api/v1/namespaces/default/services/kubernetes"
	viewRole   = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"
)

// refusals are what keeps a server from what it does for itself, and how a user ends it.
func refusals() map[string]struct {
	make func(*api)
	end  string
} {
	const everything = `[{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [services, clusterroles, leases]}]`
	return map[string]struct {
		make func(*api)
		end  string
	}{
		"failing webhook": {func(a *api) {
			a.must("POST", registrations+"validatingwebhookconfigurations", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: broken},
				webhooks: [{name: broken.example.com, failurePolicy: Fail, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/"}, rules: `+everything+`}]}`)
		}, registrations + "validatingwebhookconfigurations/broken"},
		"policy": {func(a *api) {
			a.policy("validating", "never", "services, clusterroles, leases", `validations: [{expression: "false"}]`, "validationActions: [Deny]")
		}, registrations + "validatingadmissionpolicybindings/never"},
	}
}

func targetPort(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	ports, _, err := unstructured.NestedSlice(o.Object, "spec", "ports")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(ports[0].(map[string]any)["targetPort"])
}

func portOf(t *testing.T, plane *controlplane.Plane) string {
	t.Helper()
	at, err := url.Parse(plane.URL())
	if err != nil {
		t.Fatal(err)
	}
	return at.Port()
}

// What a server does for itself may be refused: it serves, so that a user can end what refuses
// it, and is ready, because reads and writes work.
func TestServerServesWhileItsOwnRequestsAreRefused(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			start := func() (*controlplane.Plane, *api) {
				t.Helper()
				plane, err := controlplane.New(controlplane.Options{DataDir: dir, Listen: "127.0.0.1:0", ManualControllers: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = plane.Stop(context.Background()) })
				if err := plane.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				return plane, apiOf(t, plane.RESTConfig())
			}
			plane, api := start()
			before := portOf(t, plane)
			api.must("PATCH", viewRole, `{"rules": []}`)
			refusal.make(api)
			if err := plane.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if held, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+before); err == nil { // otherwise another program has it
				defer held.Close()
			}
			plane, api = start()
			if code, answer := api.do("GET", "/readyz?verbose", ""); code != http.StatusOK {
				t.Errorf("ready: %d: %s", code, answer)
			}
			equal(t, "the port of the Service, while that is refused", before, targetPort(t, api.must("GET", theService, "")))
			api.must("DELETE", refusal.end, "")
			if _, err := plane.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			equal(t, "the port of the Service", portOf(t, plane), targetPort(t, api.must("GET", theService, "")))
			if rules, _, _ := unstructured.NestedSlice(api.must("GET", viewRole, "").Object, "rules"); len(rules) == 0 {
				t.Error("the role view has not got its rules back")
			}
		})
	}
}

// Another server takes over while all that it does for itself is refused, once and for good.
func TestLeaderLeadsWhileItsOwnRequestsAreRefused(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			leader, follower := c.leader()
			leader.must("PATCH", viewRole, `{"rules": []}`)
			refusal.make(leader.api)
			if err := leader.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			follower.must("POST", configMaps, configMap("after"))
			elected, changed := follower.store.Leader()
			if code, answer := follower.do("GET", "/readyz?verbose", ""); code != http.StatusOK {
				t.Errorf("ready: %d: %s", code, answer)
			}
			follower.must("DELETE", refusal.end, "")
			// It tries again while it leads.
			follower.awaitStored(t, storage.Key{Bucket: "services", Name: "default/kubernetes"}, `"targetPort":`+portOf(t, follower.Plane)+"}")
			follower.awaitStored(t, storage.Key{Bucket: "rbac.authorization.k8s.io/clusterroles", Name: "view"}, `"pods"`)
			if again, _ := follower.store.Leader(); again != elected {
				t.Errorf("the term %v was followed by %v", elected, again)
			}
			select {
			case <-changed:
				t.Error("leadership has changed")
			default:
			}
		})
	}
}

// awaitStored waits until an object has a text in it.
func (s *server) awaitStored(t *testing.T, key storage.Key, text string) {
	t.Helper()
	cursor, err := s.store.Watch(storage.Range{Bucket: key.Bucket}, s.store.Latest().Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		rec := s.store.Latest().Get(key)
		if rec != nil && strings.Contains(string(rec.Value), text) {
			return
		}
		if _, err := cursor.Next(ctx); err != nil {
			t.Fatalf("%s has no %s: %v", key, text, err)
		}
	}
}

// A store that takes no writes does not end reads: what is missing is created when it
// can be.
func TestServerServesWhatItsStoreHasWhileThatIsFull(t *testing.T) {
	t.Parallel()
	journal := &failingJournal{}
	store, err := storage.NewJournaled(journal, func(func(storage.Change, error) bool) {}, storage.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	full := fmt.Errorf("%w: no space left on device", storage.ErrFull)
	start := func() (*controlplane.Plane, *api) {
		t.Helper()
		plane, err := controlplane.New(controlplane.Options{Store: store, ManualControllers: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = plane.Stop(context.Background()) })
		return plane, apiOf(t, plane.RESTConfig())
	}
	_, api := start()
	api.must("POST", configMaps, configMap("kept"))
	api.must("DELETE", viewRole, "")
	journal.err.Store(&full)
	plane, api := start()
	api.must("GET", configMaps+"/kept", "")
	if code, _ := api.do("GET", "/readyz", ""); code == http.StatusOK {
		t.Error("it is ready while it takes no writes")
	}
	journal.err.Store(nil)
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	api.must("GET", viewRole, "")
	if code, answer := api.do("GET", "/readyz", ""); code != http.StatusOK {
		t.Errorf("ready: %d: %s", code, answer)
	}
}
