// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"testing"

	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// TestServicesOfWebhooksLeadToTheOperator, those of APIServices do not.
func TestServicesOfWebhooksLeadToTheOperator(t *testing.T) {
	t.Parallel()
	w := &webhooks.Local{}
	for _, c := range []struct {
		service  webhookclient.Service
		operator bool
		known    bool
	}{
		{webhookclient.Service{Namespace: "a", Name: "webhooks"}, true, true},
		{webhookclient.Service{Namespace: "a", Name: "metrics", APIService: true}, false, false},
	} {
		at, known := w.Resolve(t.Context(), c.service)
		if known != c.known || known && (at.Transport == w) != c.operator {
			t.Errorf("%+v is at %+v, %t", c.service, at, known)
		}
	}
}
