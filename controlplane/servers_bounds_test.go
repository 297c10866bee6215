// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

// One connection with 65 requests that wait for the store; the limit is 64.
func TestActorsOfOneConnectionAreBounded(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		one := a.bearer("")
		one.do(http.MethodGet, "/livez", "") // there is a connection, which all requests share
		resume := a.stall()
		const waiting = 64
		codes := make(chan int)
		for range waiting + 1 {
			go func() {
				code, _ := one.do(http.MethodGet, "/api/v1/pods", "")
				codes <- code
			}()
		}
		if code := <-codes; code != http.StatusTooManyRequests {
			a.Errorf("a request beyond the bound: %d", code)
		}
		if code, answer := a.bearer("").do(http.MethodGet, "/api/v1/pods?timeout=1s", ""); code != http.StatusGatewayTimeout {
			a.Errorf("another connection: %d %s", code, answer)
		}
		resume()
		a.haveWaited(codes, waiting)
	})
}

// What a follower passes on comes over its own connection, which is not that of a client: the
// bound of a connection does not hold for all its clients together.
func TestRequestsThatArePassedOnShareNoBoundOfAConnection(t *testing.T) {
	t.Parallel()
	c := newClusterOf(t, 2, func(o *controlplane.Options) { o.Limits.WaitingPerConnection = 1 })
	leader, follower := c.leader()
	a := &actors{T: t, plane: follower.Plane, admin: leader.api, pause: leader.store.Pause, other: otherStore(t, c.db)}
	const clients = 8
	var users []*api
	for n := range clients {
		name := fmt.Sprint("user-", n)
		a.admit("User", name)
		users = append(users, a.as(name))
	}
	users[0].must(http.MethodPost, configMaps, configMap("before")) // the servers are connected
	defer a.stall()()
	codes := make(chan int)
	for n, user := range users {
		go func() {
			code, _ := user.do(http.MethodPost, configMaps+"?timeout=2s", configMap(fmt.Sprint("a-", n)))
			codes <- code
		}()
	}
	for range clients {
		if code := <-codes; code != http.StatusGatewayTimeout {
			t.Errorf("one that waits at the leader: %d", code)
		}
	}
}

// A body that does not come ends with the request's own time, wherever it is read.
func TestActorsWhoseBodiesDoNotComeAreAnsweredInTime(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		for who, client := range map[string]*api{"a token": a.bearer(a.account("one")), "nobody": a.bearer("")} {
			body, never := io.Pipe()
			r, err := http.NewRequestWithContext(a.Context(), http.MethodPost, a.plane.URL()+configMaps+"?timeout=1s", body)
			if err != nil {
				a.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/yaml")
			answer, err := client.client.Do(r)
			if err != nil {
				a.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			_ = never.Close()
			want := http.StatusGatewayTimeout
			if who == "nobody" {
				want = http.StatusForbidden
			}
			if answer.StatusCode != want {
				a.Errorf("%s: %d %s, want %d", who, answer.StatusCode, text, want)
			}
		}
	})
}

// The use of a token in a Secret is noted by whichever server it is shown to, and its answer
// does not wait for that.
func TestActorsWithTokensInSecretsAreNoted(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		const label = "kubernetes.io/legacy-token-last-used"
		a.admin.must(http.MethodPost, "/api/v1/namespaces/default/secrets", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}}`)
		key := storage.Key{Bucket: "secrets", Name: "default/token"}
		filled := a.awaitRecord(key, `"token":"`)
		if strings.Contains(filled, label) {
			a.Error("the token is noted before its use")
		}
		secret := a.admin.must(http.MethodGet, "/api/v1/namespaces/default/secrets/token", "")
		encoded, _, _ := unstructured.NestedString(secret.Object, "data", "token")
		token, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			a.Fatal(err)
		}
		one := a.bearer(string(token))
		if code, answer := one.do(http.MethodGet, configMaps, ""); code != http.StatusForbidden {
			a.Errorf("a use: %d %s", code, answer)
		}
		a.awaitRecord(key, `"`+label+`":"`)
		a.remove("secrets", "default/token")
		if code, answer := one.do(http.MethodGet, configMaps, ""); code != http.StatusUnauthorized {
			a.Errorf("after the Secret is deleted: %d %s", code, answer)
		}
	})
}

// awaitRecord returns the value under a key when it contains a text.
func (a *actors) awaitRecord(key storage.Key, text string) string {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	cursor, err := a.other.Watch(storage.Range{Bucket: key.Bucket}, a.other.Latest().Revision())
	if err != nil {
		a.Fatal(err)
	}
	defer cursor.Close()
	for {
		if rec := a.other.Get(key); rec != nil && strings.Contains(string(rec.Value), text) {
			return string(rec.Value)
		}
		if _, err := cursor.Next(ctx); err != nil {
			a.Fatalf("%s: %s does not come: %v", key, text, err)
		}
	}
}
