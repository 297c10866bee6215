// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane"
)

// cluster is a plane with its administrator.
type cluster struct {
	t     *testing.T
	plane *controlplane.Plane
}

func newCluster(t *testing.T, o controlplane.Options) *cluster {
	t.Helper()
	o.ManualControllers = true
	plane, err := controlplane.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &cluster{t: t, plane: plane}
}

// do sends a request as administrator and reads the answer into out.
func (c *cluster) do(method, path, body string, out any) int {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "https://x"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/yaml")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.plane.RESTConfig().Transport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if out != nil && response.StatusCode < 300 {
		if err := json.Unmarshal(data, out); err != nil {
			c.t.Fatal(err)
		}
	}
	return response.StatusCode
}

func (c *cluster) must(method, path, body string, out any) {
	c.t.Helper()
	if code := c.do(method, path, body, out); code >= 300 {
		c.t.Fatalf("%s %s: %d", method, path, code)
	}
}

func (c *cluster) settle() {
	c.t.Helper()
	if _, err := c.plane.Settle(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// token asks for a token of the account default in the namespace default.
func (c *cluster) token(spec string) string {
	c.t.Helper()
	var out struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	c.must("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
		"{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: "+spec+"}", &out)
	return out.Status.Token
}

// with tells what a request that carries a token is answered with.
func (c *cluster) with(token string) int {
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	c.plane.Handler().ServeHTTP(w, r)
	return w.Code
}

func (c *cluster) expect(what, token string, want int) {
	c.t.Helper()
	if got := c.with(token); got != want {
		c.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

const (
	pods     = "/api/v1/namespaces/default/pods"
	accounts = "/api/v1/namespaces/default/serviceaccounts"
	secrets  = "/api/v1/namespaces/default/secrets"
)

func TestTokensExpireAndThoseOfPodsAreExtended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, err := controlplane.TestKeys()
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(t, controlplane.Options{Authentication: controlplane.Authentication{Keys: keys}})
		c.must("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}", nil)
		short := c.token("{expirationSeconds: 600}")
		ofPod := c.token("{expirationSeconds: 3607, boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}")
		odd := c.token("{expirationSeconds: 3608, boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}")
		time.Sleep(10 * time.Minute)
		c.expect("in its last second", short, 200)
		time.Sleep(time.Second)
		c.expect("after its end", short, 401)
		time.Sleep(2 * time.Hour)
		c.expect("of a Pod, after two hours", ofPod, 200)
		c.expect("of a Pod, with a wish of its own", odd, 401)
		c.must("DELETE", pods+"/p?gracePeriodSeconds=0", "", nil)
		c.expect("of a Pod that is gone", ofPod, 401)
	})
}

func TestTokensOfAnotherPlaneAreRefused(t *testing.T) {
	t.Parallel()
	here, there := newCluster(t, controlplane.Options{}), newCluster(t, controlplane.Options{})
	token := there.token("{}")
	there.expect("there", token, 200)
	here.expect("here", token, 401)
	fork, err := there.plane.Fork()
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Stop(context.Background())
	(&cluster{t: t, plane: fork}).expect("in a copy", token, 200)
}

func TestNamespacesAreReadyForPodsWhenCreated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Options{})
	c.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: new}}", nil)
	var pod corev1.Pod
	c.must("POST", "/api/v1/namespaces/new/pods", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}", &pod)
	if len(pod.Spec.Volumes) != 1 || pod.Spec.ServiceAccountName != "default" || len(pod.Spec.Containers[0].VolumeMounts) != 1 {
		t.Errorf("the Pod has no token: %+v", pod.Spec)
	}
	var roots corev1.ConfigMap
	c.must("GET", "/api/v1/namespaces/new/configmaps/kube-root-ca.crt", "", &roots)
	if !strings.HasPrefix(roots.Data["ca.crt"], "-----BEGIN CERTIFICATE-----") {
		t.Errorf("the certificates are %q", roots.Data)
	}
	if n, err := c.plane.Settle(t.Context()); n != 0 || err != nil {
		t.Errorf("the controllers found %d things to do, %v", n, err)
	}
}

func TestDefaultAccountAndRootCAAreRestored(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Options{})
	roots := "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
	var before, after corev1.ConfigMap
	c.settle() // what is missing in a namespace this new is otherwise left to its creator
	c.must("GET", roots, "", &before)
	c.must("DELETE", accounts+"/default", "", nil)
	c.must("PATCH", roots, `{"data":{"ca.crt":"none","more":"x"}}`, nil)
	c.settle()
	c.must("GET", accounts+"/default", "", nil)
	c.must("GET", roots, "", &after)
	if len(after.Data) != 1 || after.Data["ca.crt"] != before.Data["ca.crt"] || after.UID != before.UID {
		t.Errorf("the certificates are %q", after.Data)
	}
}

func TestDisabledControllersCreateNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Options{Disable: append(controlplane.Controllers(), "ServiceAccount")})
	if code := c.do("GET", accounts+"/default", "", nil); code != 404 {
		t.Errorf("the default account: %d", code)
	}
	var pod corev1.Pod
	c.must("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}", &pod)
	if len(pod.Spec.Volumes) != 0 {
		t.Errorf("the Pod has volumes: %v", pod.Spec.Volumes)
	}
	if _, err := controlplane.New(controlplane.Options{Disable: []string{"Tea"}}); err == nil || !strings.Contains(err.Error(), "ServiceAccount") {
		t.Errorf("a plugin that there is not: %v", err)
	}
}

func TestTokenSecretsAreFilledAndDeletedWithTheirAccount(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Options{})
	c.must("POST", accounts, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}", nil)
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: NAME, annotations: {kubernetes.io/service-account.name: ACCOUNT}}, type: kubernetes.io/service-account-token}"
	c.must("POST", secrets, strings.NewReplacer("NAME", "kept", "ACCOUNT", "robot").Replace(secret), nil)
	c.must("POST", secrets, strings.NewReplacer("NAME", "lost", "ACCOUNT", "missing").Replace(secret), nil)
	c.settle()
	if code := c.do("GET", secrets+"/lost", "", nil); code != 404 {
		t.Errorf("the Secret of an account that there is not: %d", code)
	}
	var kept corev1.Secret
	c.must("GET", secrets+"/kept", "", &kept)
	token := string(kept.Data["token"])
	if string(kept.Data["namespace"]) != "default" || len(kept.Data["ca.crt"]) == 0 || kept.Annotations[corev1.ServiceAccountUIDKey] == "" {
		t.Errorf("the Secret is %+v", kept)
	}
	c.expect("its token", token, 200)
	c.must("PATCH", secrets+"/kept", `{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-01-01"}}}`, nil)
	c.expect("its token, marked as invalid", token, 401)
	c.must("PATCH", secrets+"/kept", `{"metadata":{"labels":null},"data":{"token":null}}`, nil)
	c.expect("its token, taken out", token, 401)
	c.settle()
	c.expect("its token, put back by the controller", token, 200)
	c.must("DELETE", accounts+"/robot", "", nil)
	c.expect("its token, without the account", token, 401)
	c.settle()
	if code := c.do("GET", secrets+"/kept", "", nil); code != 404 {
		t.Errorf("the Secret without its account: %d", code)
	}
}

// TestUsesOfTokensInSecrets holds that a client is warned which uses a token of a Secret that its
// account lists, and that a use counts also where it is refused: the cleaner of kube-controller-manager
// goes by both.
func TestUsesOfTokensInSecrets(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Options{})
	c.must("POST", accounts, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, secrets: [{name: listed}]}", nil)
	for _, name := range []string{"listed", "made"} {
		c.must("POST", secrets, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", annotations: {kubernetes.io/service-account.name: robot}}, type: kubernetes.io/service-account-token}", nil)
	}
	c.settle()
	for name, want := range map[string]string{
		"listed": `299 - "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens."`,
		"made":   "",
	} {
		var secret corev1.Secret
		c.must("GET", secrets+"/"+name, "", &secret)
		r := httptest.NewRequest(http.MethodGet, "/api", nil)
		r.Header.Set("Authorization", "Bearer "+string(secret.Data["token"]))
		w := httptest.NewRecorder()
		c.plane.Handler().ServeHTTP(w, r)
		if got := w.Header().Get("Warning"); w.Code != 200 || got != want {
			t.Errorf("the token of %s: %d with the warning %q, want %q", name, w.Code, got, want)
		}
		c.must("PATCH", secrets+"/"+name, `{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-01-01","kubernetes.io/legacy-token-last-used":null}}}`, nil)
		c.settle()
		c.expect("the token of "+name+", marked as invalid", string(secret.Data["token"]), 401)
		c.settle()
		c.must("GET", secrets+"/"+name, "", &secret)
		if secret.Labels["kubernetes.io/legacy-token-last-used"] == "" {
			t.Errorf("%s has no day of its last use: %v", name, secret.Labels)
		}
	}
}

// TestPodsWaitForAccountsOfOtherProcesses creates a Pod in a new namespace without the controller of
// accounts, whose place another process takes.
func TestPodsWaitForAccountsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, controlplane.Options{Disable: controlplane.Controllers()})
		c.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: new}}", nil)
		code := make(chan int, 1)
		go func() {
			code <- c.do("POST", "/api/v1/namespaces/new/pods", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}", nil)
		}()
		time.Sleep(time.Second)
		c.must("POST", "/api/v1/namespaces/new/serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}", nil)
		if got := <-code; got != http.StatusCreated {
			t.Errorf("the Pod: %d", got)
		}
	})
}

func TestTokensAreNotBoundToWebhooks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Options{})
	for kind, want := range map[string]string{
		"admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration": "cannot bind token to object of type admissionregistration.k8s.io/v1, Kind=MutatingWebhookConfiguration (feature gate APIServerWebhookAuthenticationToken is disabled)",
		"v1, kind: ConfigMap": "cannot bind token to object of type /v1, Kind=ConfigMap",
	} {
		body := "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {audiences: [a], boundObjectRef: {name: x, apiVersion: " + kind + "}}}"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x"+accounts+"/default/token", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/yaml")
		answer, err := c.plane.RESTConfig().Transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var status metav1.Status
		err = json.NewDecoder(answer.Body).Decode(&status)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusBadRequest || status.Message != want {
			t.Errorf("%s: %d %q, %v, want %q", kind, answer.StatusCode, status.Message, err, want)
		}
	}
}
