// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/controlplane"
)

// TestVersionsAreReadableForAnHour on the planes that dev and demo start.
func TestVersionsAreReadableForAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane, stop, err := StartPlane(t.Context(), controlplane.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}()
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(plane.RESTConfig(), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := wire.New(plane.RESTConfig(), wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "page", Namespace: "default"}}
		if err := c.Create(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		first := page.ResourceVersion
		for minutes := 20; minutes <= 120; minutes += 20 {
			time.Sleep(20 * time.Minute) // of the bubble
			page.Data = map[string]string{"at": time.Now().String()}
			if err := c.Update(t.Context(), page); err != nil {
				t.Fatal(err)
			}
			query := map[string][]string{"resourceVersion": {first}, "resourceVersionMatch": {"Exact"}}
			_, err := conn.Do(t.Context(), wire.Request{Verb: "list", Method: "GET", Path: "/api/v1/namespaces/default/configmaps", Query: query, Accept: wire.JSON})
			// The first version was replaced after 20 minutes, and is kept for an hour from then on.
			if readable := err == nil; minutes != 80 && readable != (minutes < 80) {
				t.Errorf("after %d minutes: %v", minutes, err)
			}
		}
	})
}
