// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// TestServiceAccountsScrapeWhatTheirRolesGive asks a secure metrics server with
// the tokens of service accounts, which the API server reviews: Steer, and
// kube-apiserver where STEER_UPSTREAM_BIN has it.
func TestServiceAccountsScrapeWhatTheirRolesGive(t *testing.T) {
	t.Parallel()
	t.Run("steer", func(t *testing.T) {
		t.Parallel()
		scrapeAsServiceAccounts(t, steertest.New(t, steertest.Options{}).Config)
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		t.Parallel()
		scrapeAsServiceAccounts(t, kubeapiserver.Server(t))
	})
}

func scrapeAsServiceAccounts(t *testing.T, cfg *rest.Config) {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: newScheme(t, corev1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme)})
	if err != nil {
		t.Fatal(err)
	}
	create := func(obj client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		create(account)
		request := &authenticationv1.TokenRequest{}
		if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	scraper, visitor := token("scraper"), token("visitor")
	create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
	})
	create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "scraper"}},
	})
	url := startSecure(t, cfg)
	secure := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // self-signed, on loopback, in a test
	}}
	t.Cleanup(secure.CloseIdleConnections)
	for _, ask := range []struct {
		who, token, says string
		status           int
	}{
		{"a request without a token", "", "a bearer token is needed", http.StatusUnauthorized},
		{"a user with a forged token", visitor[:len(visitor)-8] + "AAAAAAAA", "the token is not accepted", http.StatusUnauthorized},
		{"a service account without the role", visitor, "grant a ClusterRole with nonResourceURLs: [/metrics]", http.StatusForbidden},
		{"the scraper", scraper, "rest_client_requests_total", http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ask.token != "" {
			r.Header.Set("Authorization", "Bearer "+ask.token)
		}
		resp, err := secure.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != ask.status || !strings.Contains(string(body), ask.says) {
			t.Errorf("%s: %d %.300s; want %d and %q", ask.who, resp.StatusCode, body, ask.status, ask.says)
		}
	}
}

// startSecure runs a manager and returns where its metrics are.
func startSecure(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	told, say := io.Pipe()
	t.Cleanup(func() { _ = told.Close() })
	m := newOperator(t, cfg, manager.Options{
		Metrics: manager.Metrics{Address: "127.0.0.1:0", Secure: true},
		Log:     slog.New(slog.NewJSONHandler(say, nil)),
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		var line struct{ Msg, Server, Address string }
		if err := json.Unmarshal(lines.Bytes(), &line); err == nil && line.Msg == "Serving" && line.Server == "metrics" {
			go func() { _, _ = io.Copy(io.Discard, told) }() // ends with the pipe
			return "https://" + line.Address + "/metrics"
		}
	}
	t.Fatal("the manager did not say where it serves metrics")
	return ""
}
