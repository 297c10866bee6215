// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newAuthority(t *testing.T) Authority {
	t.Helper()
	a, err := NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func step(t *testing.T, a Authority, announced bool) (Authority, bool) {
	t.Helper()
	next, changed, err := a.Step(time.Now(), announced)
	if err != nil {
		t.Fatal(err)
	}
	if changed != !bytes.Equal(next.Bundle(), a.Bundle()) {
		t.Errorf("changed is %v", changed)
	}
	return next, changed
}

// verify verifies a certificate as an API server does that has been given a bundle.
func verify(t *testing.T, bundle []byte, c *tls.Certificate, name string) error {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		t.Fatal("no bundle")
	}
	_, err := c.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: time.Now()})
	return err
}

// TestAuthorityIsReplacedWithOverlap follows two replicas and an API server, all of
// which learn of changes hours late, for four years: no certificate that is served is
// ever distrusted.
func TestAuthorityIsReplacedWithOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := newAuthority(t) // in the Secret
		trusted := kept.Bundle()
		var known [2]Authority // by the replicas, hours ago
		var served [2]*tls.Certificate
		known[0], known[1] = kept, kept
		var verified []byte // the bundle of the last step
		signers := map[string]bool{}
		const week = 7 * 3
		for n := range 4 * 365 * 3 {
			for i := range known {
				before := served[i]
				if known[i].Renews(served[i], time.Now()) {
					var err error
					if served[i], err = known[i].Issue(time.Now(), "*.default.svc", "127.0.0.1"); err != nil {
						t.Fatal(err)
					}
				}
				if time.Now().After(served[i].Leaf.NotAfter) {
					t.Fatalf("replica %d serves a certificate that has expired", i)
				}
				if n%week > 0 && served[i] == before && bytes.Equal(trusted, verified) {
					continue // verifying costs most of the time
				}
				for _, name := range []string{"webhooks.default.svc", "127.0.0.1"} {
					if err := verify(t, trusted, served[i], name); err != nil {
						t.Fatalf("replica %d, after %v: %v", i, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), err)
					}
				}
			}
			verified = trusted
			signers[kept.signer.cert.Subject.CommonName] = true
			announced := bytes.Equal(trusted, kept.Bundle())
			known[0], known[1], trusted = kept, kept, kept.Bundle()
			if n := len(kept.trusted()); n > 3 {
				t.Fatalf("%d certificates are trusted", n)
			}
			kept, _ = step(t, kept, announced)
			time.Sleep(8 * time.Hour)
		}
		if len(signers) < 5 || len(signers) > 7 {
			t.Errorf("%d authorities in four years", len(signers))
		}
	})
}

func TestAuthorityThatIsNotAnnouncedDoesNotSign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		if _, changed := step(t, a, true); changed {
			t.Error("a fresh authority changes")
		}
		time.Sleep(authorityFor*2/3 + time.Hour)
		a, changed := step(t, a, true)
		if !changed || len(a.trusted()) != 2 {
			t.Fatal("no successor is announced")
		}
		signer := a.signer
		time.Sleep(Overlap - time.Second)
		if a, _ = step(t, a, true); a.signer != signer {
			t.Error("a successor signs before the time in which all learn of it")
		}
		time.Sleep(Overlap)
		if a, _ = step(t, a, false); a.signer != signer {
			t.Error("a successor signs that no API server trusts")
		}
		if a, _ = step(t, a, true); a.signer == signer || len(a.trusted()) != 2 {
			t.Error("the successor does not sign")
		}
		time.Sleep(authorityFor/3 + time.Hour)
		if a, _ = step(t, a, true); len(a.trusted()) != 1 {
			t.Error("an expired certificate is trusted")
		}
	})
}

func TestAuthorityThatHasExpiredIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		time.Sleep(authorityFor + time.Hour)
		fresh, changed := step(t, a, false)
		issued, err := fresh.Issue(time.Now(), "x.default.svc")
		if err != nil || !changed {
			t.Fatal(changed, err)
		}
		if err := verify(t, fresh.Bundle(), issued, "x.default.svc"); err != nil {
			t.Error(err)
		}
	})
}

func TestAuthorityIsReadFromItsSecretAsItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		for range 3 { // alone, with a successor, with a retired one
			data, err := a.Data()
			if err != nil {
				t.Fatal(err)
			}
			read, err := ParseAuthority(data)
			if err != nil {
				t.Fatal(err)
			}
			again, err := read.Data()
			if err != nil {
				t.Fatal(err)
			}
			if !maps.EqualFunc(data, again, bytes.Equal) {
				t.Errorf("read as %v, want %v", again, data)
			}
			time.Sleep(authorityFor*2/3 + time.Hour)
			a, _ = step(t, a, true)
		}
	})
}

func TestParseAuthoritySaysWhatIsDamaged(t *testing.T) {
	t.Parallel()
	a, b := newAuthority(t), newAuthority(t)
	good, err := a.Data()
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Data()
	if err != nil {
		t.Fatal(err)
	}
	for says, data := range map[string]map[string][]byte{
		"ca.crt: it is no list":               {},
		"ca.crt: it is no list ":              {"ca.crt": []byte("garbage"), "ca.key": good["ca.key"]},
		"ca.key: it is no private key":        {"ca.crt": good["ca.crt"]},
		"ca.crt has no certificate of":        {"ca.crt": good["ca.crt"], "ca.key": other["ca.key"]},
		"next.key: it is no private key":      {"ca.crt": good["ca.crt"], "ca.key": good["ca.key"], "next.key": []byte("x")},
		"ca.crt: it is no list of":            {"ca.crt": append(bytes.Clone(good["ca.crt"]), "tail"...), "ca.key": good["ca.key"]},
		"next.key: ca.crt has no certificate": {"ca.crt": good["ca.crt"], "ca.key": good["ca.key"], "next.key": other["ca.key"]},
	} {
		if _, err := ParseAuthority(data); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(says)) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
