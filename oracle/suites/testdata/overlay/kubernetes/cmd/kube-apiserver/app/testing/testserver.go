// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testing starts Steer in the place of a kube-apiserver.
package testing

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storageversion"
	restclient "k8s.io/client-go/rest"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/utils/ktesting"

	"github.com/steer-dev/steer/oracle/suites/plane"
)

// What the tests use of the file that this one replaces.
type (
	TearDownFunc func()

	TestServerInstanceOptions struct {
		SkipHealthzCheck       bool
		EnableCertAuth         bool
		StorageVersionWrapFunc func(storageversion.Manager) storageversion.Manager
		ProxyCA                *ProxyCA
		BinaryVersion          string
		RequestTimeout         time.Duration
	}

	TestServer struct {
		ClientConfig      *restclient.Config
		ServerOpts        *options.ServerRunOptions
		TearDownFn        TearDownFunc
		TmpDir            string
		EtcdClient        *clientv3.Client // of an etcd that Steer does not use
		EtcdStoragePrefix string
	}

	Logger interface {
		Helper()
		Errorf(format string, args ...interface{})
		Fatalf(format string, args ...interface{})
		Logf(format string, args ...interface{})
		Cleanup(func())
	}

	ProxyCA struct {
		ProxySigningCert *x509.Certificate
		ProxySigningKey  *rsa.PrivateKey
	}
)

func NewDefaultTestServerOptions() *TestServerInstanceOptions {
	return &TestServerInstanceOptions{EnableCertAuth: true}
}

// StartTestServer reads the flags, and follows some; the others
// are logged, and a test that depends on one is named among those that are not applicable.
func StartTestServer(t ktesting.TB, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) (TestServer, error) {
	if o != nil && o.StorageVersionWrapFunc != nil {
		return TestServer{}, errors.New("the server is in another process: nothing of it can be wrapped")
	}
	asked := options.NewServerRunOptions()
	parsed := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range asked.Flags().FlagSets {
		parsed.AddFlagSet(set)
	}
	if storage != nil {
		asked.Etcd.StorageConfig = *storage
	}
	if err := parsed.Parse(flags); err != nil {
		return TestServer{}, err
	}
	t.Logf("flags: %q", flags)
	var follows []string
	if file := asked.Admission.GenericAdmission.ConfigFile; file != "" {
		follows = append(follows, "--admission-control-config-file="+file)
	}
	p, err := plane.Start(t.Logf, follows...)
	if err != nil {
		return TestServer{}, err
	}
	result := TestServer{ClientConfig: p.Config, ServerOpts: asked, TearDownFn: p.Stop}
	if slices.Contains(asked.Authorization.Modes, "AlwaysAllow") {
		if err := plane.AllowAll(p.Config); err != nil {
			p.Stop()
			return TestServer{}, err
		}
	}
	if slices.Contains(asked.Admission.GenericAdmission.DisablePlugins, "NamespaceLifecycle") {
		plane.MakeNamespaces(p.Config)
	}
	if storage != nil {
		result.EtcdStoragePrefix = storage.Prefix
		if result.EtcdClient, _, err = GetEtcdClients(storage.Transport); err != nil {
			p.Stop()
			return TestServer{}, err
		}
		result.TearDownFn = func() {
			p.Stop()
			_ = result.EtcdClient.Close()
		}
	}
	return result, nil
}

func StartTestServerOrDie(t testing.TB, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) *TestServer {
	s, err := StartTestServer(t, o, flags, storage)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	return &s
}

func GetEtcdClients(to storagebackend.TransportConfig) (*clientv3.Client, clientv3.KV, error) {
	var config *tls.Config
	if to.CertFile != "" || to.KeyFile != "" || to.TrustedCAFile != "" {
		var err error
		config, err = transport.TLSInfo{CertFile: to.CertFile, KeyFile: to.KeyFile, TrustedCAFile: to.TrustedCAFile}.ClientConfig()
		if err != nil {
			return nil, nil, err
		}
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: to.ServerList, DialTimeout: 20 * time.Second, TLS: config})
	if err != nil {
		return nil, nil, err
	}
	return c, clientv3.NewKV(c), nil
}
