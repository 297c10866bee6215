// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
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
	s.log = &log
	o := s.options("x", runtime.NewScheme())
	if !o.Election.Enabled || o.Election.Namespace != "system" || o.HealthAddress != "" || o.Metrics.Address != ":8443" {
		t.Errorf("%+v", o)
	}
	if diff := cmp.Diff([]string{"a", "b"}, o.Cache.Namespaces); diff != "" {
		t.Error(diff)
	}
	o.Log.Log(t.Context(), slog.LevelDebug-2, "deep")
	o.Log.Log(t.Context(), slog.LevelDebug-3, "too deep")
	if got := log.String(); !strings.Contains(got, `"msg":"deep"`) || strings.Contains(got, "too deep") {
		t.Errorf("log: %s", got)
	}
}

func TestWrongFlagsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--no-such-flag"}, {"stray"}, {"--zap-encoder=xml"}, {"--zap-log-level=loud"}, {"--zap-log-level=0"},
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
	if _, err := (&settings{}).config(); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
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
