// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/discovery"
)

// TestUpgradeHeadersMakeNoRequestLong: of what another server serves, those requests have no
// time limit that kube-apiserver takes for long ones by their subresource.
func TestUpgradeHeadersMakeNoRequestLong(t *testing.T) {
	t.Parallel()
	for path, long := range map[string]bool{"/things": false, "/things/a": false, "/things/a/status": false, "/things/a/exec": true} {
		t.Run(strings.ReplaceAll(path[1:], "/", " "), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, func(o *apiserver.Options) { o.Authorizer, o.Limits.RequestTimeout = auth.AllowAll{}, 20*time.Second })
				var lasted time.Duration
				s.Delegate(apiserver.Delegated{
					Elsewhere: discovery.Elsewhere{GroupVersion: schema.GroupVersion{Group: "other.example.com", Version: "v1"}},
					Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						began := time.Now()
						<-r.Context().Done()
						lasted = time.Since(began)
					}),
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid/apis/other.example.com/v1/namespaces/default"+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
				if answer, err := s.RoundTripper(&auth.User{Name: "joe"}).RoundTrip(r); err == nil {
					_ = answer.Body.Close()
				}
				synctest.Wait()
				if want := 20 * time.Second; (lasted == want) == long {
					t.Errorf("the request lasted %v; long: %v", lasted, long)
				}
			})
		})
	}
}
