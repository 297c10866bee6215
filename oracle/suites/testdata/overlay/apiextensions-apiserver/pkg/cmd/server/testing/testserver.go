// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testing starts Steer in the place of an apiextensions-apiserver.
package testing

import (
	"io"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	restclient "k8s.io/client-go/rest"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"

	"github.com/steer-dev/steer/oracle/suites/plane"
)

// What the tests use of the file that this one replaces.
type (
	TearDownFunc              func()
	TestServerInstanceOptions struct{}

	TestServer struct {
		ClientConfig    *restclient.Config
		ServerOpts      *options.CustomResourceDefinitionsServerOptions
		TearDownFn      TearDownFunc
		TmpDir          string
		CompletedConfig extensionsapiserver.CompletedConfig // empty: it is of a server in this process
	}

	Logger interface {
		Errorf(format string, args ...interface{})
		Fatalf(format string, args ...interface{})
		Logf(format string, args ...interface{})
	}
)

func NewDefaultTestServerOptions() *TestServerInstanceOptions { return &TestServerInstanceOptions{} }

// StartTestServer follows the admission plugins that a test switches off. Its other flags are
// those of a server beside a kube-apiserver: they are logged, and a test that depends on
// one is named among those that are not applicable.
func StartTestServer(t Logger, _ *TestServerInstanceOptions, flags []string, _ *storagebackend.Config) (TestServer, error) {
	t.Logf("flags: %q", flags)
	asked := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	parsed := pflag.NewFlagSet("test", pflag.ContinueOnError)
	asked.AddFlags(parsed)
	if err := parsed.Parse(flags); err != nil {
		return TestServer{}, err
	}
	p, err := plane.Start(t.Logf, plane.Etcd{}, "--disable-admission-plugins="+strings.Join(asked.RecommendedOptions.Admission.DisablePlugins, ","))
	if err != nil {
		return TestServer{}, err
	}
	return TestServer{ClientConfig: p.Config, ServerOpts: asked, TearDownFn: p.Stop}, nil
}

func StartTestServerOrDie(t Logger, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) *TestServer {
	s, err := StartTestServer(t, o, flags, storage)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	return &s
}
