// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
)

// admitting is an admission that consists of a function.
type admitting func(ctx context.Context, r *resource.AdmissionRequest) error

func (admitting) Mutates(*resource.AdmissionRequest) bool { return false }

func (admitting) Admit(context.Context, *resource.AdmissionRequest) error { return nil }

func (a admitting) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	return a(ctx, r)
}

// TestControllersGoOnWhileTheWriteOfOneHangs holds the garbage collector's requests back,
// as a webhook can that does not answer.
func TestControllersGoOnWhileTheWriteOfOneHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := 0
		plane, api := planeOf(t, controlplane.Options{Admission: admitting(func(ctx context.Context, r *resource.AdmissionRequest) error {
			if !strings.HasSuffix(r.User.Name, ":generic-garbage-collector") {
				return nil
			}
			held++
			<-ctx.Done()
			return ctx.Err()
		})})
		if err := plane.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		owner := api.must("POST", configMaps, configMap("owner"))
		api.must("POST", configMaps, configMap("child", ownedBy(owner, false)))
		api.must("DELETE", configMaps+"/owner", "")
		time.Sleep(time.Second)
		synctest.Wait()
		if held != 1 {
			t.Fatalf("%d requests of the collector are under way, want one", held)
		}
		api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: brief}}")
		api.must("DELETE", "/api/v1/namespaces/brief", "")
		time.Sleep(time.Second)
		if code, _ := api.do("GET", "/api/v1/namespaces/brief", ""); code != http.StatusNotFound {
			t.Errorf("get the namespace: %d: its controller waits for the collector", code)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := plane.Idle(short); err == nil {
			t.Error("idle while a request is under way")
		}
		began := time.Now()
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("Stop took %v: it waits for what it has cancelled", d)
		}
	})
}
