// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testing starts Steer in the place of a kube-apiserver.
package testing

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storageversion"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	testutil "k8s.io/kubernetes/test/utils"
	"k8s.io/kubernetes/test/utils/ktesting"

	"github.com/steer-dev/steer/oracle/suites/plane"
)

// What the tests use of the file that this one replaces.
type (
	TearDownFunc func()

	TestServerInstanceOptions struct {
		SkipHealthzCheck       bool
		DisableInvariantChecks bool
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
		EtcdClient        *clientv3.Client // of an etcd that Steer uses in some tests, with values of its own
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

// Issuer of the tokens of ServiceAccounts, whatever the flags say, as in the original.
const issuer = "https://foo.bar.example.com"

// StartTestServer passes the flags of a test on.
func StartTestServer(t ktesting.TB, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) (TestServer, error) {
	if o == nil {
		o = NewDefaultTestServerOptions()
	}
	if o.StorageVersionWrapFunc != nil {
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
	passed := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return strings.HasPrefix(flag, "--service-account-issuer") })
	passed = append(passed, "--service-account-issuer="+issuer)
	if !utilfeature.DefaultFeatureGate.Enabled(plane.OwnGate) {
		passed = append(passed, "--feature-gates="+plane.OwnGate+"=false")
	}
	dir := t.TempDir()
	if o.EnableCertAuth {
		more, err := authorities(dir, o.ProxyCA, asked)
		if err != nil {
			return TestServer{}, err
		}
		passed = append(more, passed...) // those of the test count
	}
	var etcd plane.Etcd
	if storage != nil {
		etcd = plane.Etcd{Servers: storage.Transport.ServerList, Prefix: storage.Prefix}
	}
	p, err := plane.Start(t.Logf, etcd, passed...)
	if err != nil {
		return TestServer{}, err
	}
	result := TestServer{ClientConfig: p.Config, ServerOpts: asked, TearDownFn: p.Stop, TmpDir: dir}
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

// authorities makes those of clients and of front proxies, and returns the flags that name them.
func authorities(dir string, proxy *ProxyCA, asked *options.ServerRunOptions) ([]string, error) {
	clients, proxies := filepath.Join(dir, "client-ca.crt"), filepath.Join(dir, "proxy-ca.crt")
	if err := authority(clients, "client-ca", nil); err != nil {
		return nil, err
	}
	if err := authority(proxies, "front-proxy-ca", proxy); err != nil {
		return nil, err
	}
	if asked.Authentication.ClientCert.ClientCA == "" {
		asked.Authentication.ClientCert.ClientCA = clients
	}
	asked.Authentication.RequestHeader.ClientCAFile = proxies
	flags := []string{"--client-ca-file=" + clients, "--requestheader-client-ca-file=" + proxies, "--requestheader-allowed-names=ash,misty,brock"}
	headers := asked.Authentication.RequestHeader
	if len(headers.UsernameHeaders) == 0 {
		flags = append(flags, "--requestheader-username-headers=X-Remote-User", "--requestheader-uid-headers=X-Remote-Uid",
			"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-")
	}
	return flags, nil
}

// authority writes the certificate of a new authority, or of the given one.
func authority(file, name string, given *ProxyCA) error {
	var certificate *x509.Certificate
	if given != nil {
		certificate = given.ProxySigningCert
	} else {
		key, err := testutil.NewPrivateKey()
		if err != nil {
			return err
		}
		if certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key); err != nil {
			return err
		}
	}
	return os.WriteFile(file, testutil.EncodeCertPEM(certificate), 0o644)
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
