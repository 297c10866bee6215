// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"
)

func TestFlagsOfAKubebuilderManifestAreUnderstood(t *testing.T) {
	t.Setenv("WATCH_NAMESPACE", "a, b,")
	t.Setenv("POD_NAMESPACE", "system")
	s, err := parseFlags([]string{
		"--leader-elect", "--metrics-bind-address=:8443", "--health-probe-bind-address=0",
		"--zap-devel", "--zap-encoder=json", "--zap-log-level", "3", "--zap-stacktrace-level=error", "--zap-time-encoding=iso8601",
	}, Operator{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s.log.out = &log
	o := s.options("x", runtime.NewScheme())
	if !o.Election.Enabled || o.Election.Namespace != "system" || o.HealthAddress != "" || o.Metrics.Address != ":8443" || !o.Metrics.Secure {
		t.Errorf("%+v", o)
	}
	if diff := cmp.Diff([]string{"a", "b"}, o.Cache.Namespaces); diff != "" {
		t.Error(diff)
	}
	o.Log.Debug("deep")
	o.Log.Log(t.Context(), slog.LevelDebug-1, "too deep")
	if got := log.String(); !strings.Contains(got, `"msg":"deep"`) || strings.Contains(got, "too deep") {
		t.Errorf("log: %s", got)
	}
}

func TestTheMetricsFlagsOfAKubebuilderManifestAreUnderstood(t *testing.T) {
	t.Parallel()
	s, err := parseFlags([]string{
		"--metrics-bind-address=:8080", "--metrics-secure=false", "--metrics-cert-path=/certs",
		"--metrics-cert-name=a.crt", "--metrics-cert-key=a.key", "--enable-http2", "--pprof-bind-address=localhost:6060",
	}, Operator{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options("x", runtime.NewScheme())
	want := manager.Metrics{Address: ":8080", TLS: manager.TLS{Dir: "/certs", CertName: "a.crt", KeyName: "a.key", HTTP2: true}}
	if diff := cmp.Diff(want, o.Metrics); diff != "" || o.DebugAddress != "localhost:6060" {
		t.Errorf("%s %s", diff, o.DebugAddress)
	}
}

func TestFlagsOfWebhooksAreThoseOfAKubebuilderManifest(t *testing.T) {
	t.Setenv("ENABLE_WEBHOOKS", "false")
	t.Setenv("POD_NAMESPACE", "system")
	t.Setenv("TMPDIR", t.TempDir())
	s, err := parseFlags([]string{
		"--webhook-port=9876", "--webhook-cert-path=/certs", "--webhook-cert-name=a.crt", "--webhook-cert-key=a.key",
		"--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	}, Operator{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options("x", runtime.NewScheme())
	suites := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	want := webhook.Options{
		Address: ":9876", Disabled: true, Authority: webhook.Authority{Namespace: "system"},
		TLS: manager.TLS{Dir: "/certs", CertName: "a.crt", KeyName: "a.key", MinVersion: tls.VersionTLS13, CipherSuites: suites},
	}
	if diff := cmp.Diff(want, o.Webhooks); diff != "" {
		t.Error(diff)
	}
	if o.Metrics.TLS.MinVersion != tls.VersionTLS13 || !slices.Equal(o.Metrics.TLS.CipherSuites, suites) {
		t.Errorf("the flags of TLS are for all servers: %+v", o.Metrics.TLS)
	}
	mounted := filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mounted, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = parseFlags(nil, Operator{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	if o := s.options("x", runtime.NewScheme()); o.Webhooks.TLS.Dir != mounted || o.Webhooks.Address != ":9443" {
		t.Errorf("without flags: %+v", o.Webhooks)
	}
	for _, flag := range []string{"--tls-min-version=1.1", "--tls-cipher-suites=NONE", "--webhook-port=70000"} {
		if _, err := parseFlags([]string{flag}, Operator{Name: "x"}); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), strings.Split(flag, "=")[0]) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestTheZapFlagsMeanWhatTheyMeanElsewhere logs one line of each level.
func TestTheZapFlagsMeanWhatTheyMeanElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags string
		shown []string // of debug, info, error, V(1), V(4), V(7)
		json  bool
		stack []string
		time  string // a pattern
	}{
		{"", []string{"info", "error"}, true, nil, `"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)"`},
		{"--zap-devel", []string{"debug", "info", "error", "V(1)", "V(4)"}, false, nil, `time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) `},
		{"--zap-encoder=console", []string{"info", "error"}, false, nil, `time=\d{4}`},
		{"--zap-log-level=debug --zap-time-encoding=epoch", []string{"debug", "info", "error", "V(1)", "V(4)"}, true, nil, `"time":1\d{9}\.\d+|"time":1\.\d+e\+09`},
		{"--zap-log-level=7 --zap-time-encoding=millis", []string{"debug", "info", "error", "V(1)", "V(4)", "V(7)"}, true, nil, `"time":1\.\d+e\+12|"time":1\d{12}`},
		{"--zap-log-level=error --zap-time-encoding=nano", []string{"error"}, true, nil, `"time":1\d{18}`},
		{"--zap-log-level=panic", nil, true, nil, ""},
		{"--zap-log-level=info --zap-stacktrace-level=error --zap-time-encoding=iso8601", []string{"info", "error"}, true, []string{"error"}, `"time":"[^"]+T\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})"`},
		{"--zap-stacktrace-level=info --zap-time-encoding=rfc3339", []string{"info", "error"}, true, []string{"info", "error"}, `"time":"[^"]+T\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)"`},
		{"--zap-stacktrace-level=panic --zap-time-encoding=RFC3339NANO", []string{"info", "error"}, true, nil, `"time":"[^"]+T`},
	} {
		s, err := parseFlags(strings.Fields(c.flags), Operator{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s.log.out = &out
		log := s.log.logger()
		classic := logr.FromSlogHandler(log.Handler())
		var shown, stacks []string
		for _, line := range []struct {
			name string
			log  func(string)
		}{
			{"debug", func(m string) { log.Debug(m) }},
			{"info", func(m string) { log.Info(m) }},
			{"error", func(m string) { log.Error(m) }},
			{"V(1)", func(m string) { classic.V(1).Info(m) }},
			{"V(4)", func(m string) { classic.V(4).Info(m) }},
			{"V(7)", func(m string) { classic.V(7).Info(m) }},
		} {
			out.Reset()
			line.log("a message")
			if out.Len() == 0 {
				continue
			}
			shown = append(shown, line.name)
			if strings.Contains(out.String(), "TestTheZapFlags") {
				stacks = append(stacks, line.name)
			}
			if json.Valid(out.Bytes()) != c.json {
				t.Errorf("%q: %s", c.flags, &out)
			}
			if !regexp.MustCompile(c.time).MatchString(out.String()) {
				t.Errorf("%q: want a time like %s: %s", c.flags, c.time, &out)
			}
		}
		if diff := cmp.Diff(c.shown, shown); diff != "" {
			t.Errorf("%q: shown %s", c.flags, diff)
		}
		if diff := cmp.Diff(c.stack, stacks); diff != "" {
			t.Errorf("%q: stacks %s", c.flags, diff)
		}
	}
}

func TestDurationsAreLoggedInSecondsAsByZap(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"":            `"retry":1.5,"in":{"left":0.25}`,
		"--zap-devel": `retry=1.5s in.left=250ms`,
	} {
		s, err := parseFlags(strings.Fields(flags), Operator{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s.log.out = &out
		s.log.logger().Info("a message", "retry", 1500*time.Millisecond, slog.Group("in", "left", 250*time.Millisecond))
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q: %s without %s", flags, &out, want)
		}
	}
}

// TestLibrariesAreQuietUnlessTheirLevelIsAskedFor holds back what client-go says at a
// debug level, such as the state of its feature gates.
func TestLibrariesAreQuietUnlessTheirLevelIsAskedFor(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"": "info", "--zap-devel": "info", "--zap-log-level=debug": "info", "--zap-log-level=error": "",
		"--zap-log-level=4": "V(1) info",
	} {
		s, err := parseFlags(strings.Fields(flags), Operator{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s.log.out = &out
		library := logr.FromSlogHandler(quieter{s.log.logger().Handler(), s.log.libraries()})
		var shown []string
		library.V(1).Info("Feature gate default state")
		if out.Len() > 0 {
			shown = append(shown, "V(1)")
		}
		out.Reset()
		library.Info("a message")
		if out.Len() > 0 {
			shown = append(shown, "info")
		}
		if got := strings.Join(shown, " "); got != want {
			t.Errorf("%q shows %q, want %q", flags, got, want)
		}
	}
}

func TestElectionByFlagsNamesItsLease(t *testing.T) {
	t.Parallel()
	s, err := parseFlags([]string{"--leader-elect", "--leader-election-id=80807133.example.com", "--leader-election-namespace=here"}, Operator{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	got := s.options("x", nil).Election
	if want := (manager.Election{Enabled: true, Lease: "80807133.example.com", Namespace: "here"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	err = Run(t.Context(), []string{"--leader-elect"}, Operator{
		Name: "x", Config: &rest.Config{}, Setup: func(context.Context, *manager.Manager) error { return nil },
	})
	if err == nil || !strings.Contains(err.Error(), "--leader-election-namespace") {
		t.Errorf("outside a cluster: %v", err)
	}
}

func TestWrongFlagsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--no-such-flag"}, {"stray"}, {"--zap-encoder=xml"}, {"--zap-log-level=loud"}, {"--zap-log-level=0"},
		{"--zap-stacktrace-level=often"}, {"--zap-time-encoding=sundial"},
	} {
		_, err := parseFlags(args, Operator{Name: "x", Flags: func(f *flag.FlagSet) { f.SetOutput(&bytes.Buffer{}) }})
		if !errors.Is(err, ErrUsage) {
			t.Errorf("%v: got %v, want a usage error", args, err)
		}
	}
}

func TestNoClusterSaysHowToGetOne(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	if _, err := (&settings{}).config(); err == nil || !strings.Contains(err.Error(), "--kubeconfig") || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
		t.Errorf("got %v", err)
	}
}

func TestAKubeconfigWithoutAClusterIsNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("kind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&settings{kubeconfig: file}).config(); err == nil || !strings.Contains(err.Error(), file+" names no cluster") {
		t.Errorf("got %v", err)
	}
}

func TestTheKubeconfigFlagWins(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],
"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"users":[{"name":"x","user":{}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := (&settings{kubeconfig: file}).config()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "http://127.0.0.1:1" {
		t.Errorf("host %s", cfg.Host)
	}
}

func TestRunNeedsANameAndASetup(t *testing.T) {
	t.Parallel()
	if err := Run(t.Context(), nil, Operator{}); err == nil {
		t.Error("an empty operator ran")
	}
}
