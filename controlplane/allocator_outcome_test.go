// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

// failingPlane is a control plane whose admission and store fail Services as their names say:
// "refused", "held" in admission until the request ends, "full" in the store, "lost",
// which the store does not answer before the request ends, and "leaving", whose deletion
// it does not answer.
type failingPlane struct {
	storage.Store
	t     *testing.T
	plane *controlplane.Plane
	// reached gets a value when a request is held.
	reached chan struct{}

	mu sync.Mutex
	// late are the writes that the store has not answered.
	late []storage.Write
}

func newFailingPlane(t *testing.T) *failingPlane {
	t.Helper()
	c := &failingPlane{Store: storage.NewMemory(storage.MemoryOptions{}), t: t, reached: make(chan struct{}, 1)}
	plane, err := controlplane.New(controlplane.Options{Store: c, Admission: c, ManualControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.plane = plane
	return c
}

func (c *failingPlane) Admit(context.Context, *resource.AdmissionRequest) error { return nil }

func (c *failingPlane) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	switch r.Name {
	case "refused":
		return errors.New("refused by a test")
	case "held":
		c.reached <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (c *failingPlane) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if w.Key.Bucket == "services" {
		switch w.Key.Name {
		case "default/full":
			return nil, storage.ErrFull
		case "default/lost", "default/leaving":
			if w.Value != nil && w.Key.Name == "default/leaving" {
				break // its deletion is not answered
			}
			c.mu.Lock()
			c.late = append(c.late, w)
			c.mu.Unlock()
			c.reached <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return c.Store.Commit(ctx, w)
}

// create posts a Service with a port, and 10.0.0.5 if it has an address of its own, and returns how that ended.
func (c *failingPlane) create(ctx context.Context, name string) string {
	c.t.Helper()
	return c.post(ctx, "/api/v1/namespaces/default/services", fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"type":"NodePort","clusterIP":"10.0.0.5","ports":[{"port":80,"nodePort":30100}]}}`, name))
}

func (c *failingPlane) post(ctx context.Context, path, body string) string {
	c.t.Helper()
	return c.send(ctx, http.MethodPost, path, body)
}

func (c *failingPlane) send(ctx context.Context, method, path, body string) string {
	c.t.Helper()
	config := c.plane.RESTConfig()
	request, err := http.NewRequestWithContext(ctx, method, config.Host+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := config.Transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	if response.StatusCode >= 300 {
		return response.Status + " " + string(answer)
	}
	return "created"
}

// createAndLeave posts a Service whose client goes away once the request is held.
func (c *failingPlane) createAndLeave(name string) {
	c.t.Helper()
	c.leave("create "+name, func(ctx context.Context) string { return c.create(ctx, name) })
}

// deleteAndLeave deletes the Service leaving, and its client goes away once the request is held.
func (c *failingPlane) deleteAndLeave() {
	c.t.Helper()
	c.leave("delete leaving", func(ctx context.Context) string {
		return c.send(ctx, http.MethodDelete, "/api/v1/namespaces/default/services/leaving", "")
	})
}

func (c *failingPlane) leave(what string, send func(ctx context.Context) string) {
	c.t.Helper()
	ctx, leave := context.WithCancel(c.t.Context())
	defer leave()
	ended := make(chan string, 1)
	go func() { ended <- send(ctx) }()
	select {
	case <-c.reached:
	case answer := <-ended:
		c.t.Fatalf("%s: %s before it was held", what, answer)
	}
	leave()
	if answer := <-ended; answer == "created" {
		c.t.Errorf("%s: it was answered", what)
	}
}

// addressOf returns the name of the Service that 10.0.0.5 stands for.
func (c *failingPlane) addressOf() string {
	c.t.Helper()
	rec := c.Get(storage.Key{Bucket: "networking.k8s.io/ipaddresses", Name: "10.0.0.5"})
	if rec == nil {
		return ""
	}
	_, name, _ := strings.Cut(string(rec.Value), `"namespace":"default","name":"`)
	name, _, _ = strings.Cut(name, `"`)
	return name
}

func (c *failingPlane) wants(name, want string) {
	c.t.Helper()
	if got := c.create(c.t.Context(), name); !strings.Contains(got, want) {
		c.t.Errorf("create %s: %s; want %q", name, got, want)
	}
}

// touch writes something else to the store.
func (c *failingPlane) touch() {
	c.t.Helper()
	if got := c.post(c.t.Context(), "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`); got != "created" {
		c.t.Fatal(got)
	}
}

const inUse = "provided IP is already allocated"

func TestAllocatorGivesBackWhatRefusedCreationsTook(t *testing.T) {
	t.Parallel()
	c := newFailingPlane(t)
	c.wants("refused", "refused by a test")
	c.wants("next", "created")
	c.wants("other", inUse)
}

func TestAllocatorGivesBackWhatCreationsTookWhoseClientsWentAway(t *testing.T) {
	t.Parallel()
	c := newFailingPlane(t)
	c.createAndLeave("held")
	c.wants("next", "created")
}

func TestAllocatorGivesBackWhatCreationsTookThatTheStoreRefused(t *testing.T) {
	t.Parallel()
	c := newFailingPlane(t)
	c.wants("full", "space")
	c.wants("next", "created")
}

func TestAllocatorKeepsWhatIsTakenWhileTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	t.Run("not stored", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.createAndLeave("lost")
		c.wants("next", inUse)
		c.touch() // the store is past the write
		c.wants("next", "created")
	})
	t.Run("not stored, and tried again", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.createAndLeave("lost")
		c.createAndLeave("lost")
		c.wants("next", inUse)
		c.touch()
		c.wants("next", "created")
	})
	t.Run("stored", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.createAndLeave("lost")
		if _, err := c.Store.Commit(t.Context(), c.late[0]); err != nil {
			t.Fatal(err)
		}
		c.touch()
		c.wants("next", inUse)
		if c.Get(storage.Key{Bucket: "networking.k8s.io/ipaddresses", Name: "10.0.0.5"}) == nil {
			t.Error("no IPAddress stands for the address")
		}
	})
}

func TestAllocatorGivesBackWhatServicesHadWhoseDeletionIsNotAnswered(t *testing.T) {
	t.Parallel()
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.wants("leaving", "created")
		c.deleteAndLeave()
		if _, err := c.Store.Commit(t.Context(), c.late[0]); err != nil {
			t.Fatal(err)
		}
		c.wants("next", inUse)
		c.touch() // the store is past the deletion
		c.wants("next", "created")
		if got := c.addressOf(); got != "next" {
			t.Errorf("the IPAddress stands for %q", got)
		}
	})
	t.Run("deleted, and the address is not wanted again", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.wants("leaving", "created")
		c.deleteAndLeave()
		if _, err := c.Store.Commit(t.Context(), c.late[0]); err != nil {
			t.Fatal(err)
		}
		const other = `{"apiVersion":"v1","kind":"Service","metadata":{"generateName":"other-"},"spec":{"ports":[{"port":80}]}}`
		for range 2 {
			if got := c.post(t.Context(), "/api/v1/namespaces/default/services", other); got != "created" {
				t.Fatal(got)
			}
		}
		if got := c.addressOf(); got != "" {
			t.Errorf("the IPAddress stands for %q", got)
		}
	})
	t.Run("not deleted", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.wants("leaving", "created")
		c.deleteAndLeave()
		for range 3 {
			c.wants("next", inUse)
			c.touch()
		}
		if got := c.addressOf(); got != "leaving" {
			t.Errorf("the IPAddress stands for %q", got)
		}
	})
	t.Run("not deleted at first, and then deleted", func(t *testing.T) {
		t.Parallel()
		c := newFailingPlane(t)
		c.wants("leaving", "created")
		c.deleteAndLeave()
		c.wants("next", inUse)
		c.touch()
		c.wants("next", inUse)
		c.deleteAndLeave()
		if _, err := c.Store.Commit(t.Context(), c.late[1]); err != nil {
			t.Fatal(err)
		}
		c.wants("next", inUse)
		c.touch()
		c.wants("next", "created")
	})
}
