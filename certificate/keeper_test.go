// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// cluster is a [Cluster] in memory. A test reads its fields once the keeper waits, and
// changes them with change.
type cluster struct {
	mu      sync.Mutex
	data    map[string][]byte
	trusted [][]byte      // the bundles in the order of Trust, each once
	ahead   time.Duration // of its clock
	noTime  bool
	readErr error
	// writeErrs are the errors of the next writes.
	writeErrs []error
	// beforeWrite runs before a write. nil: nothing.
	beforeWrite func()
	noTrust     bool
	reads       []time.Duration // since the beginning
	writes      int
	began       time.Time
}

func (c *cluster) Read(context.Context) (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, time.Since(c.began))
	return maps.Clone(c.data), c.readErr
}

func (c *cluster) Write(_ context.Context, data map[string][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.beforeWrite != nil {
		c.beforeWrite()
	}
	if len(c.writeErrs) > 0 {
		err := c.writeErrs[0]
		c.writeErrs = c.writeErrs[1:]
		return err
	}
	c.data = data
	c.writes++
	return nil
}

func (c *cluster) Trust(_ context.Context, bundle []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.trusted); n == 0 || !bytes.Equal(c.trusted[n-1], bundle) {
		c.trusted = append(c.trusted, bundle)
	}
	return !c.noTrust
}

func (c *cluster) Now(context.Context) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noTime {
		return time.Time{}
	}
	return time.Now().Add(c.ahead)
}

// change changes the cluster while a keeper runs.
func (c *cluster) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// journal is a log that a test reads while it is written.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// take returns what was logged since it was called last.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := j.text.String()
	j.text.Reset()
	return text
}

// keep runs a keeper until the test ends. log receives its messages.
func keep(t *testing.T, c *cluster, log *journal) *Keeper {
	t.Helper()
	c.began = time.Now()
	k := NewKeeper(KeeperOptions{
		Cluster: c, Server: "webhooks", Place: "the Secret a/b", Names: []string{"*.a.svc", "127.0.0.1"},
		Advice: func(error) string { return "grant it" }, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return k
}

// shown returns the certificate that a handshake is given, nil if there is none.
func shown(t *testing.T, k *Keeper) *tls.Certificate {
	t.Helper()
	got, err := k.Get(nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// later lets time pass, and the keeper do what is due.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func checks(t *testing.T, k *Keeper, want string) {
	t.Helper()
	if err := k.Check(); (err == nil) != (want == "") || err != nil && err.Error() != want {
		t.Errorf("Check: %v, want %q", err, want)
	}
}

func TestKeeperIsReadyOnceAPIServersAreGivenTheBundle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		var log journal
		k := keep(t, c, &log)
		select {
		case <-k.Issued():
		default:
			t.Fatal("there is no certificate before the server listens")
		}
		checks(t, k, "the API server has not been given the CA of the webhooks yet")
		if len(c.trusted) != 0 || c.writes != 1 {
			t.Errorf("before the server listens: %d bundles, %d writes", len(c.trusted), c.writes)
		}
		k.Listening()
		synctest.Wait()
		checks(t, k, "")
		if len(c.trusted) != 1 || !bytes.Equal(c.trusted[0], c.data[bundleKey]) {
			t.Fatalf("API servers trust %d bundles", len(c.trusted))
		}
		for _, name := range []string{"x.a.svc", "127.0.0.1"} {
			if err := verify(t, c.trusted[0], shown(t, k), name); err != nil {
				t.Error(err)
			}
		}
		want := "in=\"the Secret a/b\" expires=" + time.Now().Add(authorityFor).UTC().Format(time.RFC3339)
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("log: %s, want %s", got, want)
		}
		first := shown(t, k)
		later(3 * keepInterval)
		if want := []time.Duration{0, keepInterval, 2 * keepInterval, 3 * keepInterval}; !slices.Equal(c.reads, want) {
			t.Errorf("the authority is read at %v, want %v", c.reads, want)
		}
		if shown(t, k) != first || c.writes != 1 {
			t.Error("without a reason there is a new certificate or authority")
		}
	})
}

func TestKeeperRetriesUntilItHasACertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{readErr: errors.New("forbidden")}
		var log journal
		k := keep(t, c, &log)
		k.Listening()
		later(2 * keepRetry)
		checks(t, k, "the webhooks have no certificate yet: read the CA of the webhooks: forbidden")
		if shown(t, k) != nil {
			t.Error("there is a certificate")
		}
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `advice="grant it"`) {
			t.Errorf("log: %s, want the error once, with advice", got)
		}
		c.change(func() { c.readErr = nil })
		later(keepRetry)
		checks(t, k, "")
		first := shown(t, k)
		if first == nil {
			t.Fatal("there is no certificate")
		}
		c.change(func() { c.readErr = errors.New("forbidden") })
		later(2 * keepInterval)
		checks(t, k, "") // API servers have the bundle still
		if want := []time.Duration{0, keepRetry, 2 * keepRetry, 3 * keepRetry, 3*keepRetry + keepInterval, 3*keepRetry + 2*keepInterval}; !slices.Equal(c.reads, want) {
			t.Errorf("the authority is read at %v, want %v", c.reads, want)
		}
		if n := strings.Count(log.take(), "grant it"); n != 1 || shown(t, k) != first {
			t.Errorf("after a success, an error is logged %d times, want 1", n)
		}
	})
}

func TestKeeperTakesTheAuthorityOfAReplicaThatWasFaster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs := newAuthority(t)
		c := &cluster{writeErrs: []error{ErrOutdated}}
		c.beforeWrite = func() {
			data, err := theirs.Data()
			if err != nil {
				t.Error(err)
			}
			c.data = data
		}
		var log journal
		k := keep(t, c, &log)
		k.Listening()
		if shown(t, k) != nil {
			t.Error("it shows a certificate of an authority that is not stored")
		}
		later(keepRetry)
		if text := log.take(); c.writes != 0 || text != "" {
			t.Errorf("%d writes, log: %s", c.writes, text)
		}
		if err := verify(t, theirs.Bundle(), shown(t, k), "x.a.svc"); err != nil {
			t.Error(err)
		}
	})
}

func TestKeeperRestoresASecretThatWasDeletedOrDamaged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data map[string][]byte
		want string // in the log
	}{
		"deleted": {nil, ""},
		"damaged": {map[string][]byte{bundleKey: []byte("x")}, "the CA in the Secret a/b is damaged: ca.crt: it is no list of certificates in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kept := &cluster{}
				var log journal
				k := keep(t, kept, &log)
				k.Listening()
				synctest.Wait()
				good, first := kept.data, shown(t, k)
				log.take()
				kept.change(func() { kept.data = c.data })
				later(2 * keepInterval)
				if !maps.EqualFunc(kept.data, good, bytes.Equal) || shown(t, k) != first || len(kept.trusted) != 1 {
					t.Error("what the replica holds is not what is stored again")
				}
				if got := log.take(); strings.Contains(got, "level=ERROR") != (c.want != "") || !strings.Contains(got, c.want) {
					t.Errorf("log: %s, want %q", got, c.want)
				}
			})
		})
	}
}

func TestKeeperReplacesItsAuthorityOnlyWhenAllAPIServersTrustTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		time.Sleep(authorityFor*2/3 + time.Hour) // a successor is due
		a, _ = step(t, a, true)
		data, err := a.Data()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(Overlap - keepInterval)
		c := &cluster{data: data, noTrust: true}
		k := keep(t, c, &journal{})
		k.Listening()
		later(4 * keepInterval)
		if shown(t, k).Leaf.CheckSignatureFrom(a.signer.cert) != nil || c.writes != 0 {
			t.Error("a successor signs that not all API servers trust")
		}
		c.change(func() { c.noTrust = false })
		later(2 * keepInterval)
		if shown(t, k).Leaf.CheckSignatureFrom(a.next.cert) != nil || c.writes != 1 {
			t.Error("the successor does not sign")
		}
		for i, bundle := range c.trusted {
			certs, err := parseCertificates(bundle)
			if err != nil || len(certs) != 2 {
				t.Errorf("bundle %d: %d certificates, %v", i, len(certs), err)
			}
		}
		if err := verify(t, c.trusted[0], shown(t, k), "x.a.svc"); err != nil {
			t.Errorf("an API server that was given the first bundle: %v", err)
		}
	})
}

func TestKeeperLogsClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster *cluster
		want    string // in the log
	}{
		"equal":      {&cluster{}, ""},
		"within":     {&cluster{ahead: clocksDiffer}, ""},
		"behind":     {&cluster{ahead: clocksDiffer + time.Second}, "the clock of this process is 5m1s behind that of the API server"},
		"ahead":      {&cluster{ahead: -time.Hour}, "the clock of this process is 1h0m0s ahead of that of the API server"},
		"not known":  {&cluster{ahead: time.Hour, noTime: true}, ""},
		"own is off": {&cluster{}, "the CA of the webhooks is valid from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if name == "own is off" {
					a, err := NewAuthority(time.Now().Add(2 * backdated))
					if err != nil {
						t.Fatal(err)
					}
					if c.cluster.data, err = a.Data(); err != nil {
						t.Fatal(err)
					}
				}
				var log journal
				keep(t, c.cluster, &log)
				if got := log.take(); strings.Contains(got, "level=ERROR") != (c.want != "") || !strings.Contains(got, c.want) {
					t.Errorf("log: %s, want %q", got, c.want)
				}
			})
		})
	}
}

func TestTLSOffersHTTP2OnlyIfAsked(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		if p := (TLS{HTTP2: http2}).Protocols(); !p.HTTP1() || p.HTTP2() != http2 {
			t.Errorf("HTTP2 %v: %s", http2, p)
		}
	}
}
