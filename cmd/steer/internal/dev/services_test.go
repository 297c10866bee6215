// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// TestServicesOfWebhooksLeadToTheOperator, those of APIServices do not, and what a flag
// names leads where it says.
func TestServicesOfWebhooksLeadToTheOperator(t *testing.T) {
	t.Parallel()
	w := &localWebhooks{}
	given := webhookclient.Options{Resolve: func(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
		return webhookclient.Backend{Address: "127.0.0.1:1"}, s.Name == "given"
	}}
	resolve := w.options(given).Resolve
	for _, c := range []struct {
		service  webhookclient.Service
		operator bool
		address  string
		known    bool
	}{
		{webhookclient.Service{Namespace: "a", Name: "webhooks"}, true, "", true},
		{webhookclient.Service{Namespace: "a", Name: "metrics", APIService: true}, false, "", false},
		{webhookclient.Service{Namespace: "a", Name: "given", APIService: true}, false, "127.0.0.1:1", true},
	} {
		at, known := resolve(t.Context(), c.service)
		if known != c.known || known && (at.Transport == w) != c.operator || known && at.Address != c.address {
			t.Errorf("%+v is at %+v, %t", c.service, at, known)
		}
	}
}
