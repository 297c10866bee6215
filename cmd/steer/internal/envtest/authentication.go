// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/delegated"
	"github.com/steer-dev/steer/controlplane"
)

// authenticationFlags are the flags of kube-apiserver that say who users are, and
// which plugins are asked about what they do.
type authenticationFlags struct {
	enable, disable []string
	anonymous       bool
	configFile      string
	given           func(flag string) bool

	issuers, audiences []string
	keyFiles           []string
	signingKeyFile     string
	keySetURL          string
	maxLife            time.Duration
	extend             bool

	webhook    webhookFlags
	webhookTTL time.Duration

	proxyCA    string
	proxy      auth.FrontProxy
	proxyNames []string
}

func (a *authenticationFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&a.enable, "enable-admission-plugins", nil, "no effect: all that there are run")
	f.StringSliceVar(&a.disable, "disable-admission-plugins", nil, "admission plugins to leave out")
	f.BoolVar(&a.anonymous, "anonymous-auth", true, "let requests without credentials in, as system:anonymous")
	f.StringVar(&a.configFile, "authentication-config", "", "file with an AuthenticationConfiguration: which paths requests without credentials may ask for")
	a.given = f.Changed
	f.StringArrayVar(&a.issuers, "service-account-issuer", nil, "issuer of service account tokens; of more than one the first issues")
	f.StringSliceVar(&a.audiences, "api-audiences", nil, "audiences that tokens for this server name (default: the issuers)")
	f.StringArrayVar(&a.keyFiles, "service-account-key-file", nil, "keys that verify service account tokens, beside the one that signs them")
	f.StringVar(&a.signingKeyFile, "service-account-signing-key-file", "", "private key that signs service account tokens; empty: a new one in memory")
	f.StringVar(&a.keySetURL, "service-account-jwks-uri", "", "where others find the keys that verify service account tokens (default: at this server)")
	f.DurationVar(&a.maxLife, "service-account-max-token-expiration", 0, "longest life of a service account token; 0: as long as is asked for")
	f.BoolVar(&a.extend, "service-account-extend-token-expiration", true, "let tokens of Pods be valid for a year, whatever they say")
	a.webhook.register(f, "authentication-token", "TokenReviews")
	f.DurationVar(&a.webhookTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute, "how long its answers are remembered")
	f.StringVar(&a.proxyCA, "requestheader-client-ca-file", "", "authorities of proxies that name users in headers")
	f.StringSliceVar(&a.proxyNames, "requestheader-allowed-names", nil, "common names that the certificates of those proxies may have (default: any)")
	f.StringSliceVar(&a.proxy.UserHeaders, "requestheader-username-headers", nil, "headers that name the user")
	f.StringSliceVar(&a.proxy.UIDHeaders, "requestheader-uid-headers", nil, "headers that name the user's UID")
	f.StringSliceVar(&a.proxy.GroupHeaders, "requestheader-group-headers", nil, "headers that name the groups")
	f.StringSliceVar(&a.proxy.ExtraPrefixes, "requestheader-extra-headers-prefix", nil, "prefixes of headers with extra information")
}

// disabled returns the admission plugins that the plane is to leave out.
func (a *authenticationFlags) disabled(notes io.Writer) []string {
	var out []string
	for _, name := range a.disable {
		if !slices.Contains(controlplane.Plugins(), name) {
			fmt.Fprintf(notes, "steer: --disable-admission-plugins: %s has no effect: there is no such plugin here\n", name)
			continue
		}
		out = append(out, name)
	}
	for _, name := range a.enable {
		if !slices.Contains(controlplane.Plugins(), name) {
			fmt.Fprintf(notes, "steer: --enable-admission-plugins: %s has no effect: there is no such plugin here\n", name)
		}
	}
	return out
}

// apply puts the flags into the options of a plane, whose keys are there.
func (a *authenticationFlags) apply(o *controlplane.Authentication) error {
	o.NoAnonymous = !a.anonymous
	if err := a.readConfig(o); err != nil {
		return fmt.Errorf("--authentication-config: %w", err)
	}
	o.Issuers, o.Audiences, o.KeySetURL = a.issuers, a.audiences, a.keySetURL
	o.MaxTokenLife, o.ExactTokenLife = a.maxLife, !a.extend
	accounts := &o.Keys.Accounts
	if a.signingKeyFile != "" {
		key, err := keyutil.PrivateKeyFromFile(a.signingKeyFile)
		if err != nil {
			return fmt.Errorf("--service-account-signing-key-file: %w", err)
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return errors.New("--service-account-signing-key-file: this key cannot sign: give an RSA or ECDSA key")
		}
		accounts.Signer = signer
	}
	for _, file := range a.keyFiles {
		keys, err := keyutil.PublicKeysFromFile(file)
		if err != nil {
			return fmt.Errorf("--service-account-key-file: %w", err)
		}
		for _, key := range keys {
			accounts.Verifiers = append(accounts.Verifiers, key)
		}
	}
	if a.webhook.file != "" {
		options, err := a.webhook.options()
		if err != nil {
			return err
		}
		options.TokenTTL = a.webhookTTL
		hook, err := delegated.NewTokenWebhook(options)
		if err != nil {
			return err
		}
		o.TokenReviewers = append(o.TokenReviewers, hook)
	}
	if a.proxyCA == "" {
		return nil
	}
	authorities, err := cert.CertsFromFile(a.proxyCA)
	if err != nil {
		return fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	proxy := a.proxy
	proxy.Certificates, proxy.Names = auth.NewCertificates(authorities...), a.proxyNames
	o.FrontProxy = &proxy
	return nil
}

// authenticationConfig is what is taken from an AuthenticationConfiguration.
type authenticationConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	JWT        []any  `json:"jwt"`
	Anonymous  *struct {
		Enabled    bool `json:"enabled"`
		Conditions []struct {
			Path string `json:"path"`
		} `json:"conditions"`
	} `json:"anonymous"`
}

// readConfig takes over what the file says, if there is one.
func (a *authenticationFlags) readConfig(o *controlplane.Authentication) error {
	if a.configFile == "" {
		return nil
	}
	text, err := os.ReadFile(a.configFile)
	if err != nil {
		return err
	}
	var c authenticationConfig
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return fmt.Errorf("%s: %w", a.configFile, err)
	}
	versions := []string{"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"}
	switch {
	case c.Kind != "AuthenticationConfiguration" || !slices.Contains(versions, c.APIVersion):
		return fmt.Errorf("%s: it is a %q of %q, want an AuthenticationConfiguration of %s", a.configFile, c.Kind, c.APIVersion, versions[0])
	case len(c.JWT) > 0:
		return fmt.Errorf("%s: jwt: tokens of other issuers are not implemented: leave it out", a.configFile)
	case c.Anonymous == nil:
		return nil
	case a.given("anonymous-auth"):
		return fmt.Errorf("%s: anonymous: --anonymous-auth says it as well: leave one of them out", a.configFile)
	case !c.Anonymous.Enabled && len(c.Anonymous.Conditions) > 0:
		return fmt.Errorf("%s: anonymous.conditions: there is nothing to restrict while it is not enabled", a.configFile)
	}
	o.NoAnonymous = !c.Anonymous.Enabled
	for i, condition := range c.Anonymous.Conditions {
		if condition.Path == "" {
			return fmt.Errorf("%s: anonymous.conditions[%d].path is missing", a.configFile, i)
		}
		o.AnonymousPaths = append(o.AnonymousPaths, condition.Path)
	}
	return nil
}
