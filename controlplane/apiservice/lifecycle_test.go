// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

// TestAggregationKeepsTheLifecycle has connections to a server, which end with the aggregation.
func TestAggregationKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "one wing") }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	services := egress.Services{Resolve: func(context.Context, egress.Service) (egress.Backend, bool) {
		return egress.Backend{Address: server.Listener.Addr().String()}, true
	}}
	errClosed := errors.New("the aggregation is closed")
	lifecycletest.RunClosed(t, func(t *testing.T) lifecycletest.Closed {
		w := newWorld(t, services, nil)
		steptest.Put(t, w.Store, wingsKey, wings(is(v1.ConditionTrue)))
		if err := w.aggregation.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		carrier := w.Server.Server.RoundTripper(componenttest.Admin())
		return lifecycletest.Closed{
			Close: func() error { w.aggregation.Close(); return nil },
			Use: func(ctx context.Context) error {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid"+wing, http.NoBody)
				if err != nil {
					return err
				}
				response, err := carrier.RoundTrip(request)
				if err != nil {
					return errClosed // the answer broke off
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				switch {
				case response.StatusCode == http.StatusServiceUnavailable, err != nil:
					return errClosed
				case string(body) != "one wing":
					return fmt.Errorf("%d %s", response.StatusCode, body)
				}
				return nil
			},
			ErrClosed: errClosed,
		}
	})
}
