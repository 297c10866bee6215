// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/storage"
)

// writePair writes tls.crt and tls.key.
func writePair(t *testing.T, dir string, issued *tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	var chain []byte
	for _, c := range issued.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c})...)
	}
	for name, text := range map[string][]byte{
		"tls.crt": chain, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOptionsHaveTheDefaultsOfTheirPlace(t *testing.T) {
	t.Parallel()
	errSeen := errors.New("seen")
	cluster := &rest.Config{Host: "https://cluster.invalid"}
	file := kubeapiserver.Kubeconfig(t, cluster)
	for name, c := range map[string]struct {
		args []string
		want extension.Options
	}{
		"alone": {
			[]string{"--standalone", "--service-namespace", "team"},
			extension.Options{Address: "127.0.0.1:6443", Service: extension.Service{Namespace: "team", Name: "notes"}, Kubeconfig: "notes.kubeconfig"},
		},
		"alone with all flags": {
			[]string{"--standalone", "--service-namespace", "team", "--bind-address", ":1", "--write-kubeconfig", "x", "--data-dir", "y", "--drain", "3s"},
			extension.Options{Address: ":1", Service: extension.Service{Namespace: "team", Name: "notes"}, Kubeconfig: "x", DataDir: "y"},
		},
		"behind": {
			[]string{"--kubeconfig", file, "--service-namespace", "team"},
			extension.Options{Address: ":6443", Service: extension.Service{Namespace: "team", Name: "notes"}, Drain: 10 * time.Second},
		},
		"behind with all flags": {
			[]string{
				"--kubeconfig", file, "--service-namespace", "team", "--service-name", "front", "--service-port", "8443",
				"--bind-address", ":1", "--cert-path", "z", "--data-dir", "y", "--drain", "3s",
			},
			extension.Options{
				Address: ":1", Service: extension.Service{Namespace: "team", Name: "front", Port: 8443},
				TLS: certificate.TLS{Dir: "z"}, DataDir: "y", Drain: 3 * time.Second,
			},
		},
		"behind on another host": {
			[]string{"--kubeconfig", file, "--service-namespace", "team", "--external-name", "laptop", "--drain", "3s"},
			extension.Options{Address: ":6443", Service: extension.Service{Namespace: "team", Name: "notes", ExternalName: "laptop"}},
		},
	} {
		s := noteServer(nil)
		var got extension.Options
		s.Store = func(o extension.Options) (storage.Store, error) {
			got = o
			return nil, errSeen
		}
		if err := extension.Run(t.Context(), c.args, s); !errors.Is(err, errSeen) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if behind := strings.HasPrefix(name, "behind"); behind != (got.Cluster != nil) || behind && got.Cluster.Host != cluster.Host {
			t.Errorf("%s: the cluster is %v", name, got.Cluster)
		}
		if got.Log != slog.Default() {
			t.Errorf("%s: it does not log to the default logger", name)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(extension.Options{}, "Cluster", "Log")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// brokenKind is a kind without a resource.
type brokenKind struct{ err error }

func (k brokenKind) Resource() (*resource.Resource, error) { return nil, k.err }

func TestRunReportsWhatKeepsAServerFromStarting(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tokenless := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tokenless, "keys", "token"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*extension.Server)
		args   []string
		want   string
	}{
		"kinds that fail": {func(s *extension.Server) {
			s.Kinds = func(context.Context) ([]extension.Kind, error) { return nil, broken }
		}, nil, "extension: the kinds of notes: broken"},
		"a kind that is invalid": {func(s *extension.Server) {
			s.Kinds = func(context.Context) ([]extension.Kind, error) { return []extension.Kind{brokenKind{broken}}, nil }
		}, nil, "broken"},
		"an address in use":               {nil, []string{"--bind-address", taken.Addr().String()}, "choose another address (--bind-address)"},
		"a data directory that is a file": {nil, []string{"--data-dir", file}, file},
		"a token that cannot be read":     {nil, []string{"--data-dir", tokenless}, "extension: read the token: "},
		"keys that are not in a directory": {func(s *extension.Server) {
			s.Store = func(extension.Options) (storage.Store, error) { return storage.NewMemory(storage.MemoryOptions{}), nil }
		}, []string{"--data-dir", file}, "extension: make the directory of the keys: "},
	} {
		s := noteServer(func(o *extension.Options) { o.Kubeconfig = "" })
		if c.change != nil {
			c.change(&s)
		}
		err := extension.Run(t.Context(), append([]string{"--standalone", "--bind-address", "127.0.0.1:0"}, c.args...), s)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, extension.ErrUsage) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestServerAloneLogsThatItCannotWriteItsKubeconfigAndTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		file := filepath.Join(dir, "config")
		log := &logText{}
		s := noteServer(func(o *extension.Options) {
			o.Listener, o.Log = &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, slog.New(slog.NewTextHandler(log, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- extension.Run(ctx, []string{"--standalone", "--write-kubeconfig", file}, s) }()
		synctest.Wait()
		if !strings.Contains(log.String(), `advice="name another file (--write-kubeconfig)"`) {
			t.Errorf("want an advice:\n%s", log)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second) // it is written at the second look and found at the third
		synctest.Wait()
		if got := kubeconfig(t, file).Host; got != "https://127.0.0.1:443" {
			t.Errorf("the kubeconfig leads to %s", got)
		}
		if got := strings.Count(log.String(), "Users have a kubeconfig"); got != 1 {
			t.Errorf("the file was announced %d times, want once:\n%s", got, log)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has the mode %v (%v), want 0600", info.Mode(), err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// nothing is a backend without objects.
type nothing struct{}

func (nothing) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{}, nil
}

func TestServerLogsThatARestartLosesItsObjects(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	computed := func(context.Context) ([]extension.Kind, error) {
		return []extension.Kind{custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition), Backend: nothing{}}}, nil
	}
	for name, c := range map[string]struct {
		kinds func(context.Context) ([]extension.Kind, error)
		args  []string
		want  bool
	}{
		"in memory":      {nil, nil, true},
		"in a directory": {nil, []string{"--data-dir", t.TempDir()}, false},
		"computed":       {computed, nil, false},
	} {
		log := &logText{}
		s := noteServer(func(o *extension.Options) { o.Kubeconfig, o.Log = "", slog.New(slog.NewTextHandler(log, nil)) })
		if c.kinds != nil {
			s.Kinds = c.kinds
		}
		if err := extension.Run(t.Context(), append([]string{"--standalone", "--bind-address", taken.Addr().String()}, c.args...), s); err == nil {
			t.Fatal("the address is not taken")
		}
		if got := strings.Contains(log.String(), `advice="name a directory (--data-dir)"`); got != c.want {
			t.Errorf("%s: the log is %q", name, log)
		}
	}
}
