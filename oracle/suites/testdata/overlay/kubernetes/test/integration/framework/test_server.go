// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"strings"
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

// StartTestServer starts Steer in the place of a kube-apiserver whose options a test changes:
// those that have flags here are passed on.
func StartTestServer(_ context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	asked := options.NewServerRunOptions()
	asked.Authorization.Modes = []string{"Node", "RBAC"}
	asked.Authentication.APIAudiences = []string{"https://foo.bar.example.com"}
	asked.Authentication.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(asked)
	}
	if setup.ModifyServerConfig != nil {
		t.Log("ignored: ModifyServerConfig")
	}
	authentication, admission := asked.Authentication, asked.Admission.GenericAdmission
	flags := []string{
		"--authorization-mode=" + strings.Join(asked.Authorization.Modes, ","),
		"--disable-admission-plugins=" + strings.Join(admission.DisablePlugins, ","),
		"--api-audiences=" + strings.Join(authentication.APIAudiences, ","),
		fmt.Sprintf("--anonymous-auth=%v", authentication.Anonymous == nil || authentication.Anonymous.Allow),
		fmt.Sprintf("--service-account-extend-token-expiration=%v", authentication.ServiceAccounts.ExtendExpiration),
	}
	for _, issuer := range authentication.ServiceAccounts.Issuers {
		flags = append(flags, "--service-account-issuer="+issuer)
	}
	if longest := authentication.ServiceAccounts.MaxExpiration; longest > 0 {
		flags = append(flags, fmt.Sprintf("--service-account-max-token-expiration=%s", longest))
	}
	if authentication.ClientCert.ClientCA != "" {
		flags = append(flags, "--client-ca-file="+authentication.ClientCert.ClientCA)
	}
	if ranges := asked.ServiceClusterIPRanges; ranges != "" {
		flags = append(flags, "--service-cluster-ip-range="+ranges)
	}
	if admission.ConfigFile != "" {
		flags = append(flags, "--admission-control-config-file="+admission.ConfigFile)
	}
	p, err := plane.Start(t.Logf, flags...)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	c, err := client.NewForConfig(p.Config)
	if err != nil {
		p.Stop()
		t.Fatal(err)
	}
	return c, p.Config, p.Stop
}
