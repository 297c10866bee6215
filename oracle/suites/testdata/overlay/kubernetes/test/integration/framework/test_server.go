// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/test/utils"

	"github.com/steer-dev/steer/oracle/suites/plane"
)

// What the tests use of the file that this one replaces.
type (
	TestServerSetup struct {
		ModifyServerRunOptions func(*options.ServerRunOptions)
		ModifyServerConfig     func(*controlplane.Config)
		DisableInvariantChecks bool
	}

	TearDownFunc func()
)

// StartTestServer starts Steer in the place of a kube-apiserver whose options a test changes:
// those that have flags here are passed on. Of the configuration of a server in this process
// users, authorization and tokens of ServiceAccounts are taken over.
func StartTestServer(_ context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	asked, err := defaults(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(asked)
	}
	var front plane.Front
	if setup.ModifyServerConfig != nil {
		t.Log("of ModifyServerConfig users, authorization and tokens are taken over, nothing else")
		if front, err = modified(asked, setup.ModifyServerConfig); err != nil {
			t.Fatal(err)
		}
	}
	stored := asked.Etcd.StorageConfig
	p, err := plane.Start(t.Logf, plane.Etcd{Servers: stored.Transport.ServerList, Prefix: stored.Prefix}, flagsOf(asked)...)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	if front.Authenticator != nil || front.Authorizer != nil {
		if err := p.Behind(front); err != nil {
			p.Stop()
			t.Fatal(err)
		}
	}
	c, err := client.NewForConfig(p.Config)
	if err != nil {
		p.Stop()
		t.Fatal(err)
	}
	return c, p.Config, p.Stop
}

// defaults are the options before a test changes them, with files of keys and authorities in a
// directory.
func defaults(dir string) (*options.ServerRunOptions, error) {
	o := options.NewServerRunOptions()
	key, clients, proxies := filepath.Join(dir, "accounts.key"), filepath.Join(dir, "client-ca.crt"), filepath.Join(dir, "proxy-ca.crt")
	text, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(key, text, 0o600), authority(clients, "client-ca"), authority(proxies, "front-proxy-ca")); err != nil {
		return nil, err
	}
	o.SecureServing.ServerCert.CertDirectory = dir
	o.ServiceAccountSigningKeyFile = key
	o.Authorization.Modes = []string{"Node", "RBAC"}
	a := o.Authentication
	a.ServiceAccounts.KeyFiles = []string{key}
	a.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	a.APIAudiences = []string{"https://foo.bar.example.com"}
	a.ClientCert.ClientCA = clients
	a.RequestHeader.ClientCAFile = proxies
	a.RequestHeader.AllowedNames = []string{"kube-aggregator"}
	a.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	a.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	a.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	return o, nil
}

// authority writes the certificate of a new authority.
func authority(file, name string) error {
	key, err := utils.NewPrivateKey()
	if err != nil {
		return err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, utils.EncodeCertPEM(certificate), 0o644)
}

// flagsOf are the flags for options.
func flagsOf(o *options.ServerRunOptions) []string {
	a, admission := o.Authentication, o.Admission.GenericAdmission
	flags := []string{
		"--authorization-mode=" + strings.Join(o.Authorization.Modes, ","),
		"--disable-admission-plugins=" + strings.Join(admission.DisablePlugins, ","),
		"--api-audiences=" + strings.Join(a.APIAudiences, ","),
		fmt.Sprintf("--anonymous-auth=%v", a.Anonymous == nil || a.Anonymous.Allow),
		fmt.Sprintf("--service-account-extend-token-expiration=%v", a.ServiceAccounts.ExtendExpiration),
		"--requestheader-allowed-names=" + strings.Join(a.RequestHeader.AllowedNames, ","),
		"--requestheader-username-headers=" + strings.Join(a.RequestHeader.UsernameHeaders, ","),
		"--requestheader-uid-headers=" + strings.Join(a.RequestHeader.UIDHeaders, ","),
		"--requestheader-group-headers=" + strings.Join(a.RequestHeader.GroupHeaders, ","),
		"--requestheader-extra-headers-prefix=" + strings.Join(a.RequestHeader.ExtraHeaderPrefixes, ","),
	}
	for _, issuer := range a.ServiceAccounts.Issuers {
		flags = append(flags, "--service-account-issuer="+issuer)
	}
	for _, file := range a.ServiceAccounts.KeyFiles {
		flags = append(flags, "--service-account-key-file="+file)
	}
	if !utilfeature.DefaultFeatureGate.Enabled(plane.OwnGate) {
		flags = append(flags, "--feature-gates="+plane.OwnGate+"=false")
	}
	if longest := a.ServiceAccounts.MaxExpiration; longest > 0 {
		flags = append(flags, fmt.Sprintf("--service-account-max-token-expiration=%s", longest))
	}
	if z := o.Authorization; z.WebhookConfigFile != "" {
		flags = append(flags, "--authorization-webhook-version="+z.WebhookVersion,
			fmt.Sprintf("--authorization-webhook-cache-authorized-ttl=%s", z.WebhookCacheAuthorizedTTL),
			fmt.Sprintf("--authorization-webhook-cache-unauthorized-ttl=%s", z.WebhookCacheUnauthorizedTTL))
	}
	if a.TokenFile != nil && a.TokenFile.TokenFile != "" {
		flags = append(flags, "--token-auth-file="+a.TokenFile.TokenFile)
	}
	for name, value := range map[string]string{
		"service-account-signing-key-file":  o.ServiceAccountSigningKeyFile,
		"service-account-jwks-uri":          a.ServiceAccounts.JWKSURI,
		"requestheader-client-ca-file":      a.RequestHeader.ClientCAFile,
		"client-ca-file":                    a.ClientCert.ClientCA,
		"service-cluster-ip-range":          o.ServiceClusterIPRanges,
		"admission-control-config-file":     admission.ConfigFile,
		"authorization-policy-file":         o.Authorization.PolicyFile,
		"authorization-webhook-config-file": o.Authorization.WebhookConfigFile,
		"audit-policy-file":                 o.Audit.PolicyFile,
		"audit-log-path":                    o.Audit.LogOptions.Path,
		"kubelet-certificate-authority":     o.KubeletConfig.TLSClientConfig.CAFile,
		"kubelet-client-certificate":        o.KubeletConfig.TLSClientConfig.CertFile,
		"kubelet-client-key":                o.KubeletConfig.TLSClientConfig.KeyFile,
	} {
		if value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	return flags
}

// modified has a test change the configuration of a server in this process, and returns what it
// put there that goes before Steer.
func modified(o *options.ServerRunOptions, modify func(*controlplane.Config)) (plane.Front, error) {
	accounts := o.Authentication.ServiceAccounts
	key, err := keyutil.PrivateKeyFromFile(o.ServiceAccountSigningKeyFile)
	if err != nil {
		return plane.Front{}, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(accounts.Issuers[0], key)
	if err != nil {
		return plane.Front{}, err
	}
	stored := storagebackend.NewDefaultConfig("/roles", nil)
	stored.Transport.ServerList = []string{GetEtcdURL()}
	roles := &storageFactory{StorageFactory: serverstorage.NewDefaultStorageFactory(*stored, runtime.ContentTypeJSON, legacyscheme.Codecs,
		serverstorage.NewDefaultResourceEncodingConfig(legacyscheme.Scheme), controlplane.DefaultAPIResourceConfigSource(), nil)}
	steers := authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)

	config := &controlplane.Config{}
	generic, extra := genericapiserver.NewConfig(legacyscheme.Codecs), &config.ControlPlane.Extra
	generic.LoopbackClientConfig = &rest.Config{}
	generic.Authentication.Authenticator, generic.Authorization.Authorizer = plane.Delegate{}, steers
	config.ControlPlane.Generic = generic
	extra.StorageFactory, extra.ServiceAccountIssuer = roles, generator
	extra.ServiceAccountMaxExpiration, extra.ExtendExpiration = accounts.MaxExpiration, accounts.ExtendExpiration
	modify(config)
	accounts.MaxExpiration, accounts.ExtendExpiration = extra.ServiceAccountMaxExpiration, extra.ExtendExpiration
	return front(o, generic, steers, roles.used.Load()), nil
}

// front is what a test has changed about users and authorization. An authorizer that reads roles
// from etcd is that of RBAC, which Steer is in its place; another one decides before Steer, which
// allows what that does.
func front(o *options.ServerRunOptions, generic *genericapiserver.Config, steers authorizer.Authorizer, roles bool) plane.Front {
	var out plane.Front
	if _, same := generic.Authentication.Authenticator.(plane.Delegate); !same {
		out.Authenticator = generic.Authentication.Authenticator
	}
	switch is := generic.Authorization.Authorizer; {
	case roles:
		o.Authorization.Modes = []string{"RBAC"}
	case is != steers:
		out.Authorizer = is
		o.Authorization.Modes = []string{"AlwaysAllow"}
	}
	return out
}

// storageFactory knows whether it was used.
type storageFactory struct {
	serverstorage.StorageFactory
	used atomic.Bool
}

// NewConfig implements [serverstorage.StorageFactory].
func (f *storageFactory) NewConfig(resource schema.GroupResource, example runtime.Object) (*storagebackend.ConfigForResource, error) {
	f.used.Store(true)
	return f.StorageFactory.NewConfig(resource, example)
}
