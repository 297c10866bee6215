// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"slices"
	"testing"

	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"

	"github.com/steer-dev/steer/oracle/suites/plane"
)

// What the tests use of the file that this one replaces.
type (
	TestServerSetup struct {
		ModifyServerRunOptions func(*options.ServerRunOptions)
		ModifyServerConfig     func(*controlplane.Config) // of a server in this process: not called
	}

	TearDownFunc func()
)

// StartTestServer starts Steer in the place of a kube-apiserver whose options a test changes.
func StartTestServer(_ context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	asked := options.NewServerRunOptions()
	asked.Authorization.Modes = []string{"Node", "RBAC"}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(asked)
	}
	if setup.ModifyServerConfig != nil {
		t.Log("ignored: ModifyServerConfig")
	}
	p, err := plane.Start(t.Logf)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	if slices.Contains(asked.Authorization.Modes, "AlwaysAllow") {
		if err := plane.AllowAll(p.Config); err != nil {
			p.Stop()
			t.Fatal(err)
		}
	}
	if slices.Contains(asked.Admission.GenericAdmission.DisablePlugins, "NamespaceLifecycle") {
		plane.MakeNamespaces(p.Config)
	}
	c, err := client.NewForConfig(p.Config)
	if err != nil {
		p.Stop()
		t.Fatal(err)
	}
	return c, p.Config, p.Stop
}
