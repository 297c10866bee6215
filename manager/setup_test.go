// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"log/slog"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// newScheme returns a scheme of the given kinds.
func newScheme(t *testing.T, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme, err := client.NewScheme(add...)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newEnv returns a control plane, with a client of the given kinds.
func newEnv(t *testing.T, add ...func(*runtime.Scheme) error) *steertest.Env {
	t.Helper()
	return steertest.New(t, steertest.Options{Scheme: newScheme(t, add...)})
}

// newOperator returns a manager with the name "operator", the core kinds, and no log
// unless the options say otherwise.
func newOperator(t *testing.T, cfg *rest.Config, o manager.Options) *manager.Manager {
	t.Helper()
	o.Name = "operator"
	if o.Scheme == nil {
		o.Scheme = newScheme(t, corev1.AddToScheme)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m, err := manager.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// through returns cfg with another transport.
func through(cfg *rest.Config, transport http.RoundTripper) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Transport = transport
	return cfg
}
