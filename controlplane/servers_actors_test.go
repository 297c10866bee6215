// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

// actors is a server that is sent requests by actors who have no certificates.
type actors struct {
	*testing.T
	plane *controlplane.Plane
	keys  *controlplane.Keys
	admin *api
	pause func() (resume func())
	// other is a store of the same data that is never paused.
	other *shared.Store
}

// setUp is one way in which a server runs.
type setUp struct {
	name string
	of   func(t *testing.T) *actors
}

// setUps are a server that is alone, one that leads, and one that follows.
func setUps() []setUp {
	several := func(pick func(*cluster) *server) func(*testing.T) *actors {
		return func(t *testing.T) *actors {
			t.Helper()
			c := newClusterOf(t, 2, withTokens)
			s := pick(c)
			return &actors{T: t, plane: s.Plane, keys: c.keys, admin: s.api, pause: s.store.Pause, other: otherStore(t, c.db)}
		}
	}
	return []setUp{
		{"alone", func(t *testing.T) *actors {
			t.Helper()
			db := shared.New(1)
			store := db.Open(storage.MemoryOptions{})
			t.Cleanup(func() { _ = store.Close() })
			keys, err := controlplane.NewKeys()
			if err != nil {
				t.Fatal(err)
			}
			o := controlplane.Options{Store: store, Authentication: controlplane.Authentication{Keys: keys}}
			withTokens(&o)
			plane, _ := listening(t, o)
			return &actors{T: t, plane: plane, keys: keys, admin: (&cluster{T: t}).client(plane), pause: store.Pause, other: otherStore(t, db)}
		}},
		{"leader", several(func(c *cluster) *server {
			leader, _ := c.leader()
			return leader
		})},
		{"follower", several(func(c *cluster) *server {
			_, follower := c.leader()
			return follower
		})},
	}
}

// withTokens has a server accept tokens that do not rest on stored objects.
func withTokens(o *controlplane.Options) {
	o.Authentication.Tokens = auth.Tokens{
		"ada-token": {Name: "ada", Groups: []string{auth.Masters}},
		"bob-token": {Name: "bob"},
	}
}

// onEachServer runs a test on a server of each set-up.
func onEachServer(t *testing.T, test func(*actors)) {
	t.Helper()
	for _, s := range setUps() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(s.of(t))
		})
	}
}

func otherStore(t *testing.T, db *shared.Database) *shared.Store {
	t.Helper()
	store := db.Open(storage.MemoryOptions{})
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// remove deletes what is stored under a key; it arrives at the servers as the write of another.
func (a *actors) remove(bucket, name string) {
	a.Helper()
	if _, err := a.other.Transact(a.Context(), storage.Write{Key: storage.Key{Bucket: bucket, Name: name}, Expect: storage.AnyRevision}); err != nil {
		a.Fatal(err)
	}
}

// stall has the server wait for a write until resume is called.
func (a *actors) stall() (resume func()) {
	a.Helper()
	resume = sync.OnceFunc(a.pause())
	a.Cleanup(resume)
	w := storage.Write{Key: storage.Key{Bucket: "example.com/others", Name: "a"}, Value: []byte("{}"), Expect: storage.AnyRevision}
	if _, err := a.other.Transact(a.Context(), w); err != nil {
		a.Fatal(err)
	}
	return resume
}

// account makes a ServiceAccount that may do everything and returns a token of it.
func (a *actors) account(name string) (token string) {
	a.Helper()
	a.admin.must(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+name+`}}`)
	a.admit("ServiceAccount", name)
	request := a.admin.must(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/"+name+"/token", `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}`)
	token, _, _ = unstructured.NestedString(request.Object, "status", "token")
	return token
}

// admit binds a User or a ServiceAccount to the role cluster-admin.
func (a *actors) admit(kind, name string) {
	a.Helper()
	subject := `apiGroup: rbac.authorization.k8s.io`
	if kind == "ServiceAccount" {
		subject = "namespace: default"
	}
	a.admin.must(http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding,
metadata: {name: `+name+`}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: `+kind+`, name: `+name+`, `+subject+`}]}`)
}

// bearer is a client with a token, or with nothing.
func (a *actors) bearer(token string) *api {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, ExpectContinueTimeout: time.Hour}
	a.Cleanup(transport.CloseIdleConnections)
	var through http.RoundTripper = transport
	if token != "" {
		through = withToken{transport, token}
	}
	return &api{tb: a, host: a.plane.URL(), client: &http.Client{Transport: through}}
}

type withToken struct {
	http.RoundTripper
	token string
}

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.RoundTripper.RoundTrip(r)
}

// as is a client in this process of a user without a role.
func (a *actors) as(user string) *api {
	a.Helper()
	u := &auth.User{Name: user, Groups: []string{auth.Authenticated}}
	if user == auth.Anonymous {
		u.Groups = []string{auth.Unauthenticated}
	}
	return apiOf(a, a.plane.RESTConfigFor(u))
}

// haveWaited reads the answers of users without a role, whose requests have waited.
func (a *actors) haveWaited(codes <-chan int, waiting int) {
	a.Helper()
	for range waiting {
		if code := <-codes; code != http.StatusForbidden {
			a.Errorf("one that has waited: %d", code)
		}
	}
}

func TestActorsThatWaitForTheStoreHoldNoSlots(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		resume := a.stall()
		const waiting = 400
		anonymous, codes := a.as(auth.Anonymous), make(chan int)
		for range waiting + 1 {
			go func() {
				code, _ := anonymous.do(http.MethodGet, "/api/v1/pods", "")
				codes <- code
			}()
		}
		// The first answer is that to the request for which there is no place.
		if code := <-codes; code != http.StatusTooManyRequests {
			a.Errorf("a request beyond the bound: %d", code)
		}
		for _, path := range []string{"/healthz", "/livez", "/readyz"} {
			if code, answer := a.bearer("").do(http.MethodGet, path, ""); code != http.StatusOK {
				a.Errorf("%s: %d %s", path, code, answer)
			}
		}
		for _, client := range []*api{a.as("jane"), a.admin} {
			if code, answer := client.do(http.MethodGet, "/api/v1/pods?timeout=1s", ""); code != http.StatusGatewayTimeout {
				a.Errorf("another user: %d %s", code, answer)
			}
		}
		resume()
		a.haveWaited(codes, waiting)
	})
}

func TestActorsWithForgedTokensWaitForNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		token := a.account("one")
		defer a.stall()()
		forged := a.bearer(token[:len(token)-8] + "AAAAAAAA")
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, answer := forged.do(method, configMaps, configMap("a")); code != http.StatusUnauthorized {
				a.Errorf("%s: %d %s", method, code, answer)
			}
		}
	})
}

func TestActorsWithRevokedTokensDoNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		one := a.bearer(a.account("one"))
		one.must(http.MethodPost, configMaps, configMap("before"))
		resume := a.stall()
		a.remove("serviceaccounts", "default/one")
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			path := configMaps + "?timeout=1s&resourceVersion=0"
			if code, answer := one.do(method, path, configMap("after")); code != http.StatusGatewayTimeout {
				a.Errorf("%s, while the server does not know what was written: %d %s", method, code, answer)
			}
		}
		resume()
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, answer := one.do(method, configMaps, configMap("after")); code != http.StatusUnauthorized {
				a.Errorf("%s: %d %s", method, code, answer)
			}
		}
		if code, _ := a.admin.do(http.MethodGet, configMaps+"/after", ""); code != http.StatusNotFound {
			a.Errorf("what it wrote: %d", code)
		}
	})
}

// slowBody is a body that says when it is read, and does not end before it is told to.
type slowBody struct {
	read, end chan struct{}
	io.Reader // the rest
}

func (b *slowBody) Read(p []byte) (int, error) {
	select {
	case b.read <- struct{}{}:
	case <-b.end:
	}
	<-b.end
	return b.Reader.Read(p)
}

func (b *slowBody) Close() error { return nil }

// The account is deleted after the follower has looked it up, and before it passes the request
// on: it reads the body in between.
func TestLeaderAuthenticatesAgainWhatItExecutes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	leader, follower := c.leader()
	a := &actors{T: t, plane: follower.Plane, admin: leader.api, other: otherStore(t, c.db)}
	one := a.bearer(a.account("one"))
	body := &slowBody{read: make(chan struct{}), end: make(chan struct{}), Reader: strings.NewReader(configMap("after"))}
	answered := make(chan string, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.plane.URL()+configMaps, body)
		if err != nil {
			answered <- err.Error()
			return
		}
		r.Header.Set("Content-Type", "application/yaml")
		r.Header.Set("Expect", "100-continue") // the server asks for the body when it reads it
		answer, err := one.client.Do(r)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		answered <- fmt.Sprint(answer.StatusCode, " ", string(text))
	}()
	<-body.read
	a.remove("serviceaccounts", "default/one")
	close(body.end)
	if got := <-answered; !strings.HasPrefix(got, "401") {
		t.Errorf("the leader answers %s", got)
	}
	if code, _ := a.admin.do(http.MethodGet, configMaps+"/after", ""); code != http.StatusNotFound {
		t.Errorf("what was written: %d", code)
	}
}

// slowly sends a review whose body comes slowly, and returns the code of the answer.
func slowly(ctx context.Context, config *rest.Config, body *slowBody) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://in-process.invalid/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/yaml")
	answer, err := config.Transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// One user without a role sends 200 reviews whose bodies do not come, which are as many as
// there are slots for writes.
func TestActorsWhoSendSlowlyLeaveSlotsToOthers(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		a.admit("User", "editor")
		const attempts, share = 200, 100
		body := &slowBody{read: make(chan struct{}), end: make(chan struct{}), Reader: strings.NewReader("")}
		release := sync.OnceFunc(func() { close(body.end) })
		defer release()
		mallory, codes := a.plane.RESTConfigFor(&auth.User{Name: "mallory", Groups: []string{auth.Authenticated}}), make(chan int, attempts)
		for range attempts {
			go func() {
				own := *body
				own.Reader = strings.NewReader("{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {nonResourceAttributes: {path: /, verb: get}}}")
				code, err := slowly(a.Context(), mallory, &own)
				if err != nil {
					a.Error(err)
				}
				codes <- code
			}()
		}
		held := 0
		for range attempts {
			select {
			case <-body.read:
				held++
			case code := <-codes:
				if code != http.StatusTooManyRequests {
					a.Errorf("a request beyond the share of its user: %d", code)
				}
			}
		}
		if held != share {
			a.Errorf("one user holds %d of %d slots, want %d", held, attempts, share)
		}
		editor := a.as("editor")
		editor.must(http.MethodPost, configMaps, configMap("a"))
		editor.must(http.MethodPost, "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: fresh}}")
		a.awaitObject("serviceaccounts", "fresh/default")
		a.awaitObject("configmaps", "fresh/kube-root-ca.crt")
		release()
		for range held {
			if code := <-codes; code != http.StatusCreated {
				a.Errorf("a review whose body came at last: %d", code)
			}
		}
	})
}

// awaitObject returns when an object is stored.
func (a *actors) awaitObject(bucket, name string) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	cursor, err := a.other.Watch(storage.Range{Bucket: bucket}, a.other.Latest().Revision())
	if err != nil {
		a.Fatal(err)
	}
	defer cursor.Close()
	for a.other.Get(storage.Key{Bucket: bucket, Name: name}) == nil {
		if _, err := cursor.Next(ctx); err != nil {
			a.Fatalf("%s %s: %v", bucket, name, err)
		}
	}
}

// As many users as there are slots for writes hold one each: what the server sends to itself
// finds slots that none of them can have.
func TestActorsWhoHoldAllSlotsLeaveThoseOfTheServer(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		const slots = 200
		body := &slowBody{read: make(chan struct{}), end: make(chan struct{})}
		release := sync.OnceFunc(func() { close(body.end) })
		defer release()
		codes := make(chan int, slots)
		hold := func(user string) {
			own := *body
			own.Reader = strings.NewReader("{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {nonResourceAttributes: {path: /, verb: get}}}")
			code, err := slowly(a.Context(), a.plane.RESTConfigFor(&auth.User{Name: user, Groups: []string{auth.Authenticated}}), &own)
			if err != nil {
				a.Error(err)
			}
			codes <- code
		}
		for n := range slots {
			go hold(fmt.Sprint("user-", n))
		}
		for range slots {
			<-body.read
		}
		hold("late")
		if code := <-codes; code != http.StatusTooManyRequests {
			a.Errorf("one more user: %d", code)
		}
		a.admin.must(http.MethodPost, "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: fresh}}")
		a.awaitObject("serviceaccounts", "fresh/default")
		a.awaitObject("configmaps", "fresh/kube-root-ca.crt")
		release()
		for range slots {
			if code := <-codes; code != http.StatusCreated {
				a.Errorf("a review whose body came at last: %d", code)
			}
		}
	})
}
