// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
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

// Long requests that are no watches have limits of their own, of each user and of all.
func TestSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *apiserver.Options) {
		o.Authorizer, o.Limits.ConnectionsPerUser, o.Limits.Connections = auth.AllowAll{}, 2, 3
	})
	begun := make(chan struct{})
	s.Delegate(apiserver.Delegated{
		Elsewhere: discovery.Elsewhere{GroupVersion: schema.GroupVersion{Group: "other.example.com", Version: "v1"}},
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			<-r.Context().Done()
		}),
	})
	var open sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer open.Wait()
	defer cancel()
	session := func(user string) (code int) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid/apis/other.example.com/v1/namespaces/default/things/a/exec", http.NoBody)
		if err != nil {
			t.Error(err)
		}
		answer, err := s.RoundTripper(&auth.User{Name: user}).RoundTrip(r)
		if err != nil {
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	begin := func(user string) (code int) {
		answered := make(chan int, 1)
		open.Go(func() { answered <- session(user) })
		select {
		case <-begun:
			return http.StatusOK
		case code := <-answered:
			return code
		}
	}
	for i, want := range []struct {
		user string
		code int
	}{{"jane", 200}, {"jane", 200}, {"jane", 429}, {"joe", 200}, {"joe", 429}} { // two of a user, three of all
		if code := begin(want.user); code != want.code {
			t.Errorf("session %d, of %s: %d, want %d", i, want.user, code, want.code)
		}
	}
}
