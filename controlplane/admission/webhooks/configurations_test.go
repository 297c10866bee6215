// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

func TestConfigurationsAreInForceOnceTheyAreStored(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{mutating, validating} {
		c := newCluster(t)
		calls := func(what, want string) {
			t.Helper()
			equal(t, what, "", c.admit(t.Context(), bucket, c.create(t)))
			equal(t, what, want, strings.Join(c.called(), " "))
		}
		calls("without any", "")
		c.configure(t, bucket, "one", hook("w"))
		calls("created", "w")
		calls("unchanged", "w")
		c.configure(t, bucket, "one", hook("x"))
		calls("changed", "x")
		c.configure(t, bucket, "two", hook("y", func(w *v1.MutatingWebhook) { w.Rules[0].Operations = []v1.OperationType{v1.Delete} }))
		calls("another one for other operations", "x")
		steptest.Put(t, c.store, storage.Key{Bucket: bucket, Name: "one"}, nil)
		calls("deleted", "")
	}
}

// TestConfigurationsAreNotHeldToWebhooks: one that refuses everything can be deleted.
func TestConfigurationsAreNotHeldToWebhooks(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{mutating, validating} {
		c := newCluster(t)
		c.configure(t, bucket, "one", hook("w"))
		for _, name := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			r := c.write(t, name+".admissionregistration.k8s.io", resource.Delete, nil, nil)
			equal(t, name, "", c.admit(t.Context(), bucket, r))
		}
		equal(t, bucket+": calls", []string{}, c.called())
	}
}

// TestConfigurationsThatCannotBeReadFailRequests instead of letting them pass.
func TestConfigurationsThatCannotBeReadFailRequests(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{mutating, validating} {
		c := newCluster(t)
		steptest.Put(t, c.store, storage.Key{Bucket: bucket, Name: "one"}, []string{"no configuration"})
		if got := c.admit(t.Context(), bucket, c.create(t)); !strings.HasPrefix(got, "500 InternalError: Internal error occurred: admission: read "+bucket+" one: ") {
			t.Errorf("%s: %s", bucket, got)
		}
	}
}
