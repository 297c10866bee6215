// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/delegated"
)

// cluster answers reviews, in process.
type cluster struct {
	mu sync.Mutex
	// asked are the reviews of tokens and of access, by their specs.
	tokens   []authenticationv1.TokenReviewSpec
	accesses []authorizationv1.SubjectAccessReviewSpec
	// fail is how many of the next requests get this code.
	fail, code int
	config     map[string]string
	delay      time.Duration
	// underway counts the requests, most how many there were at once.
	underway, most int
}

// RoundTrip implements [http.RoundTripper].
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.underway++
	c.most = max(c.most, c.underway)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underway--
	}()
	if c.delay > 0 {
		select {
		case <-time.After(c.delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := httptest.NewRecorder()
	answer := func(v any) (*http.Response, error) {
		err := json.NewEncoder(w).Encode(v)
		return w.Result(), err
	}
	if c.fail > 0 {
		c.fail--
		w.WriteHeader(c.code)
		return answer(metav1.Status{Message: "out of order"})
	}
	switch r.URL.Path {
	case "/base/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		c.tokens = append(c.tokens, review.Spec)
		if review.Spec.Token == "good" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"us"}, User: authenticationv1.UserInfo{
				Username: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"a"}},
			}}
		}
		return answer(review)
	case "/base/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		c.accesses = append(c.accesses, review.Spec)
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: review.Spec.User == "jane", Denied: review.Spec.User == "mallory", Reason: "so it is"}
		return answer(review)
	case "/base/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication":
		return answer(corev1.ConfigMap{Data: c.config})
	}
	return nil, errors.New("unexpected path " + r.URL.Path)
}

// reviews is how many tokens the cluster has reviewed.
func (c *cluster) reviews() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tokens)
}

func newDelegation(t *testing.T, c *cluster) *delegated.Delegation {
	t.Helper()
	d, err := delegated.New(delegated.Options{Config: &rest.Config{Host: "https://cluster.invalid/base", Transport: c}, Audiences: []string{"us"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bearer(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestDelegationReviewsATokenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{delay: time.Second}
		d := newDelegation(t, c)
		if _, err := d.Authenticate(bearer("good")); err == nil {
			t.Error("a request was authenticated before Load")
		}
		if err := d.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 { // at once
			all.Go(func() {
				user, err := d.Authenticate(bearer("good"))
				if err != nil {
					t.Error(err)
					return
				}
				want := &auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scope": {"a"}}}
				if diff := cmp.Diff(want, user); diff != "" {
					t.Errorf("user (-want +got):\n%s", diff)
				}
			})
		}
		all.Wait()
		if n := c.reviews(); n != 1 {
			t.Errorf("%d reviews of the same token, want 1", n)
		}
		if diff := cmp.Diff(authenticationv1.TokenReviewSpec{Token: "good", Audiences: []string{"us"}}, c.tokens[0]); diff != "" {
			t.Errorf("review (-want +got):\n%s", diff)
		}
		if user, err := d.Authenticate(bearer("bad")); err == nil {
			t.Errorf("a wrong token is of %v", user)
		}
		time.Sleep(11 * time.Second)
		if _, err := d.Authenticate(bearer("good")); err != nil {
			t.Error(err)
		}
		if n := c.reviews(); n != 3 {
			t.Errorf("%d reviews after the first has expired, want 3", n)
		}
		if user, err := d.Authenticate(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil || user.Name != auth.Anonymous {
			t.Errorf("without credentials: %v, %v", user, err)
		}
	})
}

// TestDelegationBoundsReviewsOfInventedTokens floods it while a token is reviewed, and while
// it has to be reviewed again.
func TestDelegationBoundsReviewsOfInventedTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{delay: time.Second}
		d := newDelegation(t, c)
		if err := d.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		good := func() {
			all.Go(func() {
				began := time.Now()
				if user, err := d.Authenticate(bearer("good")); err != nil || user.Name != "jane" || time.Since(began) > time.Second {
					t.Errorf("%v, %v after %s", user, err, time.Since(began))
				}
			})
		}
		flood := func(turn string) {
			for i := range 11_000 {
				all.Go(func() {
					if user, err := d.Authenticate(bearer(fmt.Sprint(turn, i))); err == nil {
						t.Errorf("an invented token is of %v", user)
					}
				})
			}
		}
		for _, turn := range []string{"first-", "second-"} {
			good()
			synctest.Wait()
			flood(turn)
			synctest.Wait()
			good()
			all.Wait()
			time.Sleep(20 * time.Second)
		}
		flood("third-")
		synctest.Wait()
		good() // it is reviewed again, beside the flood
		all.Wait()
		reviews := 0
		c.mu.Lock()
		for _, spec := range c.tokens {
			if spec.Token == "good" {
				reviews++
			}
		}
		all3, most := len(c.tokens), c.most
		c.mu.Unlock()
		if reviews != 3 || most > 64 {
			t.Errorf("%d reviews of the good token, want 3; %d at once; %d in all", reviews, most, all3)
		}
	})
}

func TestDelegationAsksForEachKindOfAccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		z := newDelegation(t, c).Authorizer()
		jane := &auth.User{Name: "jane", Groups: []string{"dev"}, Extra: map[string][]string{"scope": {"a"}}}
		list := &auth.Attributes{
			User: jane, Verb: "list", ResourceRequest: true, Group: "example.com", Version: "v1", Resource: "notes", Namespace: "default",
			Selected: func() (fields.Requirements, labels.Requirements) {
				byField, _ := fields.ParseSelector("spec.colour=red,metadata.name!=a")
				byLabel, _ := labels.Parse("x in (a,b),!y,z")
				required, _ := byLabel.Requirements()
				return byField.Requirements(), required
			},
		}
		for range 3 {
			if decision, reason, err := z.Authorize(t.Context(), list); decision != auth.Allow || reason != "so it is" || err != nil {
				t.Errorf("list: %v %q %v", decision, reason, err)
			}
		}
		if decision, _, err := z.Authorize(t.Context(), &auth.Attributes{User: &auth.User{Name: "ann"}, Verb: "get", Path: "/metrics"}); decision != auth.NoOpinion || err != nil {
			t.Errorf("metrics: %v %v", decision, err)
		}
		if decision, _, err := z.Authorize(t.Context(), &auth.Attributes{User: &auth.User{Name: "mallory"}, Verb: "get", Path: "/metrics"}); decision != auth.Deny || err != nil {
			t.Errorf("metrics: %v %v", decision, err)
		}
		for _, known := range []*auth.Attributes{
			{User: &auth.User{Name: "root", Groups: []string{auth.Masters}}, Verb: "delete", ResourceRequest: true, Resource: "notes"},
			{User: &auth.User{Name: auth.Anonymous}, Verb: "get", Path: "/readyz/ping"},
		} {
			if decision, _, err := z.Authorize(t.Context(), known); decision != auth.Allow || err != nil {
				t.Errorf("%v: %v %v", known, decision, err)
			}
		}
		in, notIn := metav1.LabelSelectorOpIn, metav1.LabelSelectorOpDoesNotExist
		want := []authorizationv1.SubjectAccessReviewSpec{
			{
				User: "jane", Groups: []string{"dev"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"a"}},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: "default", Verb: "list", Group: "example.com", Version: "v1", Resource: "notes",
					FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
						{Key: "metadata.name", Operator: metav1.FieldSelectorOpNotIn, Values: []string{"a"}},
						{Key: "spec.colour", Operator: metav1.FieldSelectorOpIn, Values: []string{"red"}},
					}},
					LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
						{Key: "x", Operator: in, Values: []string{"a", "b"}}, {Key: "y", Operator: notIn}, {Key: "z", Operator: metav1.LabelSelectorOpExists},
					}},
				},
			},
			{User: "ann", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}},
			{User: "mallory", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}},
		}
		if diff := cmp.Diff(want, c.accesses); diff != "" {
			t.Errorf("reviews (-want +got):\n%s", diff)
		}
	})
}

func TestDelegationSurvivesAClusterThatIsOutOfOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{fail: 2, code: http.StatusServiceUnavailable}
		d := newDelegation(t, c)
		a := &auth.Attributes{User: &auth.User{Name: "jane"}, Verb: "get", Path: "/metrics"}
		if decision, _, err := d.Authorizer().Authorize(t.Context(), a); decision != auth.Allow || err != nil {
			t.Errorf("after two failures: %v %v", decision, err)
		}
		c.fail, c.code = 100, http.StatusForbidden
		a.User = &auth.User{Name: "ann"}
		decision, _, err := d.Authorizer().Authorize(t.Context(), a)
		if decision != auth.NoOpinion || err == nil || !strings.Contains(err.Error(), "403 out of order") {
			t.Errorf("without rights to ask: %v %v", decision, err)
		}
		if c.fail != 99 {
			t.Errorf("a refusal was asked for %d times, want once", 100-c.fail)
		}
		if err := d.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "bind the Role extension-apiserver-authentication-reader") {
			t.Errorf("trust: %v", err)
		}
		c.fail, c.delay = 0, time.Hour
		start := time.Now()
		if _, _, err := d.Authorizer().Authorize(t.Context(), a); err == nil || time.Since(start) > 11*time.Second {
			t.Errorf("a cluster that does not answer: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _, _ = d.Authorizer().Authorize(context.Background(), a) }()
		synctest.Wait()
		cancel()
		if _, _, err := d.Authorizer().Authorize(ctx, a); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone: %v", err)
		}
		time.Sleep(time.Minute)
		c.delay = 0
		if decision, _, err := d.Authorizer().Authorize(t.Context(), a); decision != auth.NoOpinion || err != nil {
			t.Errorf("afterwards: %v %v", decision, err)
		}
	})
}

func TestDelegationKeepsItsTrustWhenANewOneIsInvalid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		d := newDelegation(t, c)
		check := d.Checks()[0].Run
		if check() == nil {
			t.Error("healthy before Load")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.Run(ctx)
		time.Sleep(61 * time.Second)
		if err := check(); err != nil {
			t.Errorf("Run does not read the trust: %v", err)
		}
		for name, config := range map[string]map[string]string{
			"no certificate": {"client-ca-file": "nonsense"},
			"not a list":     {"requestheader-allowed-names": "front"},
		} {
			c.config = config
			if err := d.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "extension-apiserver-authentication") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if user, err := d.Authenticate(bearer("good")); err != nil || user.Name != "jane" {
			t.Errorf("%v, %v", user, err)
		}
	})
}
