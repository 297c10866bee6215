// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// answered returns a request of a Pod and what its signer writes: a certificate of two hours
// from now on, changed by change before it is issued.
func answered(t *testing.T, change func(*x509.Certificate)) (old, now podRequest) {
	t.Helper()
	key := newKey(t)
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	longest := int32(2 * 3600)
	old = &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "default", UID: "u"},
		Spec:       certificatesv1.PodCertificateRequestSpec{SignerName: "example.com/a", MaxExpirationSeconds: &longest, StubPKCS10Request: stub},
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "p"}, DNSNames: []string{"p.example.com"}, EmailAddresses: []string{"a@example.com"},
		NotBefore: time.Now(), NotAfter: time.Now().Add(2 * time.Hour),
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	now = old.DeepCopy()
	at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	now.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{{Type: issued, Status: metav1.ConditionTrue, Reason: "Issued", LastTransitionTime: metav1.Now()}},
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der})),
		NotBefore:        at(template.NotBefore), NotAfter: at(template.NotAfter), BeginRefreshAt: at(template.NotBefore.Add(time.Hour)),
	}
	return old, now
}

func TestStatusOfPodCertificateRequestTellsOfItsCertificate(t *testing.T) {
	t.Parallel()
	const none = ""
	for name, c := range map[string]struct {
		certificate func(*x509.Certificate)
		status      func(*certificatesv1.PodCertificateRequestStatus)
		want        string
	}{
		"right": {nil, nil, none},
		"almost too early": {func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = c.NotBefore.Add(time.Second-allowedSkew), c.NotAfter.Add(-allowedSkew)
		}, nil, none},
		"too early": {func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = c.NotBefore.Add(-allowedSkew), c.NotAfter.Add(-allowedSkew)
		}, nil, "status.notBefore: Invalid value: \"1999-12-31T23:55:00Z\": must be set to within 5 minutes"},
		"another begin": {nil, func(s *certificatesv1.PodCertificateRequestStatus) { s.NotBefore.Time = s.NotBefore.Add(time.Second) }, "NotBefore time encoded in the leaf"},
		"another end":   {nil, func(s *certificatesv1.PodCertificateRequestStatus) { s.NotAfter.Time = s.NotAfter.Add(time.Second) }, "NotAfter time encoded in the leaf"},
		"short":         {func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Hour - time.Second) }, nil, `3599000000000: leaf certificate lifetime must be >= 1 hour`},
		"long":          {func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(time.Second) }, nil, "<= spec.maxExpirationSeconds (7200)"},
		"early refresh": {nil, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.BeginRefreshAt.Time = s.NotBefore.Add(refreshMargin - time.Second)
		}, "10 minutes after"},
		"late refresh": {nil, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.BeginRefreshAt.Time = s.NotAfter.Add(time.Second - refreshMargin)
		}, "10 minutes before"},
		"dots":                {func(c *x509.Certificate) { c.DNSNames = []string{"a..b"} }, nil, "should not contain '..'"},
		"dot":                 {func(c *x509.Certificate) { c.DNSNames = []string{"a."} }, nil, "should not start or end with '.'"},
		"mail":                {func(c *x509.Certificate) { c.EmailAddresses = []string{"a"} }, nil, "invalid EmailAddress"},
		"another certificate": {nil, func(s *certificatesv1.PodCertificateRequestStatus) { s.CertificateChain += s.CertificateChain }, none},
		"another block": {nil, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain += strings.ReplaceAll(s.CertificateChain, pemCertificate, "A")
		}, "must consist entirely of"},
		"a broken certificate": {nil, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain += string(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: []byte("a")}))
		}, "intermediate certificate does not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				old, now := answered(t, func(template *x509.Certificate) {
					if c.certificate != nil {
						c.certificate(template)
					}
				})
				if c.status != nil {
					c.status(&now.Status)
				}
				errs := validatePodStatus(now, old)
				if c.want == none && len(errs) > 0 || c.want != none && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)) {
					t.Errorf("%v, want %q", errs, c.want)
				}
			})
		})
	}
}

func TestPodCleanerDeletesRequestsAfterAQuarterOfAnHour(t *testing.T) {
	t.Parallel()
	store, cleaner := storage.NewMemory(storage.MemoryOptions{}), NewPodCleaner()
	r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "a", CreationTimestamp: metav1.NewTime(begin())}}
	steptest.Put(t, store, storage.Key{Bucket: "certificates.k8s.io/podcertificaterequests", Name: "a/r"}, r)
	cleaner.Reset(store.Latest())
	due := begin().Add(15 * time.Minute)
	if !cleaner.Wake().Equal(due) || len(cleaner.Sync(nil, due.Add(-time.Second))) != 0 {
		t.Errorf("it goes at %v, want %v", cleaner.Wake(), due)
	}
	got := cleaner.Sync(nil, due)
	if len(got) != 1 || got[0].Method != "DELETE" || got[0].Path != "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests/r" ||
		got[0].User != "system:serviceaccount:kube-system:podcertificaterequestcleaner" {
		t.Errorf("%v", got)
	}
	if len(got) == 1 && !json.Valid(got[0].Body) {
		t.Errorf("the options are %s", got[0].Body)
	}
}
