// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"
)

// settings are the standard flags and environment variables.
type settings struct {
	kubeconfig, metrics, health, debug string
	records                            string
	secure, http2                      bool
	cert, webhookCert                  manager.TLS
	webhookPort                        int
	webhookDrain                       time.Duration
	tlsVersion, tlsSuites              string
	elect                              bool
	electNamespace, electID            string
	log                                logging
}

// parseFlags reads the standard flags and the operator's own.
func parseFlags(args []string, op Operator) (*settings, error) {
	s := &settings{log: logging{out: os.Stderr}}
	set := flag.NewFlagSet(op.Name, flag.ContinueOnError)
	s.register(set)
	if op.Flags != nil {
		op.Flags(set)
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w; see --help", ErrUsage, err)
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q; see --help", ErrUsage, set.Arg(0))
	}
	if err := s.checkTLS(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return s, s.log.check()
}

// checkTLS reads the flags that all HTTPS servers share.
func (s *settings) checkTLS() error {
	version, err := certificate.ParseVersion(s.tlsVersion)
	if err != nil {
		return fmt.Errorf("--tls-min-version: %w", err)
	}
	suites, err := certificate.ParseCipherSuites(s.tlsSuites)
	if err != nil {
		return fmt.Errorf("--tls-cipher-suites: %w", err)
	}
	if s.webhookPort < 0 || s.webhookPort > 65535 {
		return fmt.Errorf("--webhook-port: %d is no port", s.webhookPort)
	}
	for _, t := range []*manager.TLS{&s.cert, &s.webhookCert} {
		t.HTTP2, t.MinVersion, t.CipherSuites = s.http2, version, suites
	}
	return nil
}

func (s *settings) register(set *flag.FlagSet) {
	set.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` that names the cluster; default $KUBECONFIG, the cluster this runs in, ~/.kube/config")
	set.StringVar(&s.metrics, "metrics-bind-address", "0", "`address` of /metrics; 0 serves none")
	set.BoolVar(&s.secure, "metrics-secure", true, "serve /metrics by HTTPS, and only to who may get it")
	set.StringVar(&s.cert.Dir, "metrics-cert-path", "", "`directory` with the certificate of /metrics; empty makes a self-signed one")
	set.StringVar(&s.cert.CertName, "metrics-cert-name", "tls.crt", "`file` of the certificate in that directory")
	set.StringVar(&s.cert.KeyName, "metrics-cert-key", "tls.key", "`file` of the key in that directory")
	set.IntVar(&s.webhookPort, "webhook-port", 9443, "`port` of the webhooks; it listens once a webhook is added, and 0 serves none over the network")
	set.DurationVar(&s.webhookDrain, "webhook-drain", 0, "how long webhooks are served after the operator was told to stop, until API servers have noticed: a `duration`; default 10s, negative not at all")
	set.StringVar(&s.webhookCert.Dir, "webhook-cert-path", "", "`directory` with the certificate of the webhooks; empty means one of an authority of the operator's own, or what is in /tmp/k8s-webhook-server/serving-certs")
	set.StringVar(&s.webhookCert.CertName, "webhook-cert-name", "tls.crt", "`file` of the certificate in that directory")
	set.StringVar(&s.webhookCert.KeyName, "webhook-cert-key", "tls.key", "`file` of the key in that directory")
	set.BoolVar(&s.http2, "enable-http2", false, "offer HTTP/2 on /metrics and to webhooks")
	set.StringVar(&s.tlsVersion, "tls-min-version", "", "lowest `version` of TLS on /metrics and for webhooks: VersionTLS12 or VersionTLS13; default VersionTLS12")
	set.StringVar(&s.tlsSuites, "tls-cipher-suites", "", "cipher `suites` of TLS 1.2 on /metrics and for webhooks, by Go's names, separated by commas; default Go's choice")
	set.StringVar(&s.health, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 serves none")
	set.StringVar(&s.debug, "pprof-bind-address", "0", "`address` of /debug/pprof/ and /debug/reconciles, which authenticate no one; 0 serves none")
	set.StringVar(&s.records, "record-dir", "", "`directory` that keeps the records of reconciles, 256 MiB at most, for steer history and steer why; default $STEER_RECORD_DIR, empty keeps them in memory alone")
	set.BoolVar(&s.elect, "leader-elect", false, "let one of several processes lead")
	set.StringVar(&s.electNamespace, "leader-election-namespace", "", "`namespace` of the leader lease; default $POD_NAMESPACE, $RUNTIME_NAMESPACE, the namespace this runs in")
	set.StringVar(&s.electID, "leader-election-id", "", "`name` of the leader lease, such as that of a former operator; default the operator's name")
	set.BoolVar(&s.log.devel, "zap-devel", false, "log for people: text, debug level")
	set.StringVar(&s.log.encoder, "zap-encoder", "", "log `format`: json or console; default json, with --zap-devel console")
	set.StringVar(&s.log.level, "zap-log-level", "", "log `level`: debug, info, error, panic (nothing, not even errors), or a number above 0 for V(number); default info, with --zap-devel debug")
	set.StringVar(&s.log.stack, "zap-stacktrace-level", "", "`level` from which lines carry a stack: info, error or panic; default panic")
	set.StringVar(&s.log.timeForm, "zap-time-encoding", "", "`form` of times: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano; default RFC 3339 with milliseconds")
}

// config finds the cluster: flag, environment, the cluster this runs in, home.
func (s *settings) config() (*rest.Config, error) {
	cfg, err := client.LoadConfig(s.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	return cfg, nil
}

// options makes the manager's options of the settings.
func (s *settings) options(name string, scheme *runtime.Scheme) manager.Options {
	o := manager.Options{
		Name:          name,
		Scheme:        scheme,
		HealthAddress: address(s.health),
		Metrics:       manager.Metrics{Address: address(s.metrics), Secure: s.secure, TLS: s.cert},
		Webhooks: webhook.Options{
			Address: s.webhookAddress(), TLS: s.webhookTLS(), Drain: s.webhookDrain, Authority: webhook.Authority{Namespace: cmp.Or(os.Getenv("POD_NAMESPACE"), os.Getenv("RUNTIME_NAMESPACE"))},
			Disabled: os.Getenv("ENABLE_WEBHOOKS") == "false",
		},
		DebugAddress: address(s.debug),
		RecordDir:    s.records,
		Election: manager.Election{
			Enabled:   s.elect,
			Lease:     s.electID,
			Namespace: cmp.Or(s.electNamespace, os.Getenv("POD_NAMESPACE"), os.Getenv("RUNTIME_NAMESPACE")),
		},
		Log: s.log.logger(),
	}
	for namespace := range strings.SplitSeq(os.Getenv("WATCH_NAMESPACE"), ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			o.Cache.Namespaces = append(o.Cache.Namespaces, namespace)
		}
	}
	return o
}

// webhookAddress is the address of the port, in the form of webhook.Options.
func (s *settings) webhookAddress() string {
	if s.webhookPort == 0 {
		return "0"
	}
	return ":" + strconv.Itoa(s.webhookPort)
}

// webhookTLS is the TLS of the webhooks: with the files that older kubebuilder projects
// mount without a flag, where they are.
func (s *settings) webhookTLS() manager.TLS {
	t := s.webhookCert
	mounted := filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	if _, err := os.Stat(filepath.Join(mounted, t.CertName)); err == nil && t.Dir == "" {
		t.Dir = mounted
	}
	return t
}

// address turns the conventional "0" into no address.
func address(flag string) string {
	if flag == "0" {
		return ""
	}
	return flag
}
