// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream runs kube-apiserver and etcd on
// loopback in a temporary directory, and stops it for sure.
//
// The flags are those of envtest where it has an opinion: RBAC, a static admin
// token, the ServiceAccount admission plugin off unless asked for (no controller
// creates service accounts), no controllers beside the two processes. fsync stays on, so that
// measurements compare equal durability.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/steer-dev/steer/oracle/internal/process"
)

// Options say where the binaries are and how to run them.
type Options struct {
	// Binaries is the directory with etcd and kube-apiserver. Empty means
	// $STEER_UPSTREAM_BIN.
	Binaries string
	// Log receives what the two processes write. Nil drops it.
	Log io.Writer
	// Token is the bearer token of the administrator (group system:masters).
	// Empty means "admin".
	Token string
	// Admission lists the plugins that are on although no controller does their
	// part: ServiceAccount, or none.
	Admission []string
	// FrontProxy gives kube-apiserver a certificate to show aggregated API servers.
	FrontProxy bool
	// ServerFlags are added to kube-apiserver's.
	ServerFlags []string
	// Wait bounds how long the start may take. 0 means 90 seconds.
	Wait time.Duration
}

// ErrNotBuilt says that the binaries of kube-apiserver and etcd are missing.
var ErrNotBuilt = errors.New("kube-apiserver and etcd are not built: run `go build -o bin/ ./cmd/...` in oracle/ and set STEER_UPSTREAM_BIN to that bin directory")

// Server is a running kube-apiserver with its etcd.
type Server struct {
	// URL is where kube-apiserver listens.
	URL string
	// Token is the administrator's.
	Token string
	// CA is the certificate of the server, PEM.
	CA []byte
	// Started is how long it took from the first exec to /readyz.
	Started time.Duration

	etcd, apiserver *process.Process
	etcdURL         string
	dir             string
	client          *http.Client
}

// Start runs both processes and returns when /readyz says ok and the default
// namespace exists. The caller must call Stop.
func Start(ctx context.Context, options Options) (_ *Server, err error) {
	binaries := cmp.Or(options.Binaries, os.Getenv("STEER_UPSTREAM_BIN"))
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(binaries, name)); err != nil || binaries == "" {
			return nil, ErrNotBuilt
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(options.Wait, 90*time.Second))
	defer cancel()
	dir, err := os.MkdirTemp("", "steer-upstream-")
	if err != nil {
		return nil, err
	}
	s := &Server{Token: cmp.Or(options.Token, "admin"), dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	ports, err := process.FreePorts(3)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	s.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	if s.etcd, err = process.Start(options.Log, filepath.Join(binaries, "etcd"), etcdFlags(dir, s.etcdURL, ports[1])...); err != nil {
		return nil, err
	}
	flags, err := s.serverFlags(ports[2])
	if err != nil {
		return nil, err
	}
	if !slices.Contains(options.Admission, "ServiceAccount") {
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if options.FrontProxy {
		more, err := frontProxyFlags(dir)
		if err != nil {
			return nil, err
		}
		flags = append(flags, more...)
	}
	if s.apiserver, err = process.Start(options.Log, filepath.Join(binaries, "kube-apiserver"), append(flags, options.ServerFlags...)...); err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	if err := s.await(ctx, "/readyz"); err != nil {
		return nil, err
	}
	s.Started = time.Since(begin)
	return s, s.await(ctx, "/api/v1/namespaces/default")
}

func etcdFlags(dir, clientURL string, peerPort int) []string {
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--data-dir=" + filepath.Join(dir, "etcd"),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=default=" + peerURL,
		"--quota-backend-bytes=8589934592",
		"--log-level=error",
	}
}

func (s *Server) serverFlags(port int) ([]string, error) {
	tokens := filepath.Join(s.dir, "tokens.csv")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "%s,admin,admin,system:masters\nuser-token,user,user\n", s.Token), 0o600); err != nil {
		return nil, err
	}
	key := filepath.Join(s.dir, "sa.key")
	if err := writeKey(key); err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=" + s.etcdURL,
		"--cert-dir=" + filepath.Join(s.dir, "certs"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		"--authorization-mode=RBAC",
		"--token-auth-file=" + tokens,
		"--service-account-issuer=https://127.0.0.1/",
		"--service-account-jwks-uri=https://127.0.0.1/openid/v1/jwks",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--v=0",
	}, nil
}

// Etcd is the URL of etcd, for other programs that are measured on it.
func (s *Server) Etcd() string { return s.etcdURL }

// Client returns a client that trusts the server. It adds no credentials.
func (s *Server) Client() *http.Client { return s.client }

// await repeats a request until it answers 200.
func (s *Server) await(ctx context.Context, path string) error {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	var last error
	for {
		if last = s.probe(ctx, path); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver did not answer %s: %w", path, last)
		case <-s.etcd.Ended:
			return fmt.Errorf("etcd ended: %w", s.etcd.Err)
		case <-s.apiserver.Ended:
			return fmt.Errorf("kube-apiserver ended: %w", s.apiserver.Err)
		case <-pause.C:
		}
	}
}

func (s *Server) probe(ctx context.Context, path string) error {
	if s.client == nil {
		if err := s.trust(); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return err
}

// trust builds the client once the server has written its certificate.
func (s *Server) trust() error {
	ca, err := os.ReadFile(filepath.Join(s.dir, "certs", "apiserver.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("the server's certificate is not written yet")
	}
	s.CA = ca
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}
	return nil
}

// Compact drops etcd's history up to the current revision. The server's watch
// caches keep theirs.
func (s *Server) Compact(ctx context.Context) error {
	var head struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := s.askEtcd(ctx, "/v3/kv/range", map[string]any{"key": "AA=="}, &head); err != nil {
		return err
	}
	return s.askEtcd(ctx, "/v3/kv/compaction", map[string]any{"revision": head.Header.Revision, "physical": true}, nil)
}

func (s *Server) askEtcd(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.etcdURL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s", path, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// PIDs returns the process ids of etcd and kube-apiserver.
func (s *Server) PIDs() []int {
	return []int{s.etcd.PID(), s.apiserver.PID()}
}

// Stop ends both processes, waits for them and removes their directory. It may
// be called more than once.
func (s *Server) Stop() error {
	for _, p := range []*process.Process{s.apiserver, s.etcd} {
		if p != nil {
			p.Stop()
		}
	}
	return os.RemoveAll(s.dir)
}

// writeKey makes the key that signs service account tokens.
func writeKey(file string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
}
