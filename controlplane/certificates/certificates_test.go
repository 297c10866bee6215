// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// asks returns a request with a PKCS #10 request of a template.
func asks(t *testing.T, signer string, template *x509.CertificateRequest, usages ...certificatesv1.KeyUsage) request {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u", CreationTimestamp: metav1.NewTime(begin())},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Usages: usages,
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
}

// begin is when everything begins.
func begin() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func authority(t *testing.T, life time.Duration) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: begin().Add(-time.Hour), NotAfter: begin().Add(life),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{Certificate: ca, Signer: key}
}

func decide(r request, t certificatesv1.RequestConditionType, at time.Time) request {
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(at),
	})
	return r
}

const (
	client      = certificatesv1.UsageClientAuth
	server      = certificatesv1.UsageServerAuth
	signature   = certificatesv1.UsageDigitalSignature
	apiClient   = certificatesv1.KubeAPIServerClientSignerName
	nodeClient  = certificatesv1.KubeAPIServerClientKubeletSignerName
	nodeServing = certificatesv1.KubeletServingSignerName
)

func TestSignerChecksTheRulesOfItsSignerName(t *testing.T) {
	t.Parallel()
	jane := pkix.Name{CommonName: "jane", Organization: []string{"dev"}}
	node := pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}}
	named := &x509.CertificateRequest{Subject: node, DNSNames: []string{"n"}}
	for name, c := range map[string]struct {
		signer string
		csr    *x509.CertificateRequest
		usages []certificatesv1.KeyUsage
		refuse string
	}{
		"a user":                       {apiClient, &x509.CertificateRequest{Subject: jane}, []certificatesv1.KeyUsage{client, signature}, ""},
		"a user that serves":           {apiClient, &x509.CertificateRequest{Subject: jane}, []certificatesv1.KeyUsage{client, server}, `"server auth" is not certified`},
		"a user that is no client":     {apiClient, &x509.CertificateRequest{Subject: jane}, []certificatesv1.KeyUsage{signature}, `lack "client auth"`},
		"a node":                       {nodeClient, &x509.CertificateRequest{Subject: node}, []certificatesv1.KeyUsage{client, signature}, ""},
		"a node with names":            {nodeClient, named, []certificatesv1.KeyUsage{client}, "no subject alternative names"},
		"a user as a node":             {nodeClient, &x509.CertificateRequest{Subject: jane}, []certificatesv1.KeyUsage{client}, "organization is not system:nodes"},
		"a node of no name":            {nodeClient, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "n", Organization: node.Organization}}, []certificatesv1.KeyUsage{client}, "common name"},
		"a serving node":               {nodeServing, named, []certificatesv1.KeyUsage{server, signature}, ""},
		"a serving node by address":    {nodeServing, &x509.CertificateRequest{Subject: node, IPAddresses: []net.IP{{10, 0, 0, 1}}}, []certificatesv1.KeyUsage{server}, ""},
		"a serving node of no name":    {nodeServing, &x509.CertificateRequest{Subject: node}, []certificatesv1.KeyUsage{server}, "DNS names or IP addresses"},
		"a serving node with an email": {nodeServing, &x509.CertificateRequest{Subject: node, DNSNames: []string{"n"}, EmailAddresses: []string{"a@b"}}, []certificatesv1.KeyUsage{server}, "no other"},
	} {
		r := asks(t, c.signer, c.csr, c.usages...)
		csr, err := parse(r.Spec.Request)
		if err != nil {
			t.Fatal(err)
		}
		err = check(c.signer, csr, r.Spec.Usages)
		if (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%s: %v, want %q", name, err, c.refuse)
		}
	}
}

func TestSignerCopiesTheRequestAndBoundsItsDuration(t *testing.T) {
	t.Parallel()
	seconds := int32(3600)
	for name, c := range map[string]struct {
		seconds *int32
		ca      time.Duration
		want    time.Duration
	}{
		"as long as asked for":            {&seconds, 10 * longestLife, time.Hour},
		"a year":                          {nil, 10 * longestLife, longestLife},
		"not longer than their authority": {nil, time.Minute, time.Minute},
	} {
		ca := authority(t, c.ca)
		r := asks(t, apiClient, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane", Organization: []string{"dev"}}, DNSNames: []string{"x"}}, client, signature)
		r.Spec.ExpirationSeconds = c.seconds
		csr, err := parse(r.Spec.Request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := ca.issue(r, csr, begin())
		if err != nil {
			t.Fatal(err)
		}
		if problem := certificateProblem(text); problem != "" {
			t.Errorf("%s: the API would refuse it: %s", name, problem)
		}
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca.Certificate)
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: begin(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if cert.Subject.String() != "CN=jane,O=dev" || !slices.Equal(cert.DNSNames, []string{"x"}) || cert.IsCA || cert.KeyUsage != x509.KeyUsageDigitalSignature {
			t.Errorf("%s: %v, %v, %v", name, cert.Subject, cert.DNSNames, cert.KeyUsage)
		}
		if got := cert.NotAfter.Sub(begin()); got != c.want {
			t.Errorf("%s: it ends after %v, want %v", name, got, c.want)
		}
	}
}

func put(t *testing.T, store storage.Store, r request) storage.Key {
	t.Helper()
	key := storage.Key{Bucket: bucket, Name: r.Name}
	steptest.Put(t, store, key, r)
	return key
}

func TestSignerSignsOnlyApprovedRequests(t *testing.T) {
	t.Parallel()
	ca := authority(t, longestLife)
	jane := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}
	for name, c := range map[string]struct {
		r    request
		want string // in what is sent
	}{
		"approved":                     {decide(asks(t, apiClient, jane, client), certificatesv1.CertificateApproved, begin()), `"certificate":"`},
		"not approved":                 {asks(t, apiClient, jane, client), ""},
		"denied":                       {decide(asks(t, apiClient, jane, client), certificatesv1.CertificateDenied, begin()), ""},
		"for another signer":           {decide(asks(t, "example.com/x", jane, client), certificatesv1.CertificateApproved, begin()), ""},
		"approved, but not like this":  {decide(asks(t, apiClient, jane, server), certificatesv1.CertificateApproved, begin()), "SignerValidationFailure"},
		"approved, and failed already": {decide(decide(asks(t, apiClient, jane, server), certificatesv1.CertificateApproved, begin()), certificatesv1.CertificateFailed, begin()), ""},
	} {
		store := storage.NewMemory(storage.MemoryOptions{})
		put(t, store, c.r)
		s := NewSigner(func() (*Authority, error) { return ca, nil })
		s.Reset(store.Latest())
		got := s.Sync(store.Latest(), begin())
		if (len(got) == 1) != (c.want != "") || len(got) == 1 && (!strings.Contains(string(got[0].Body), c.want) || !strings.HasSuffix(got[0].Path, "/r/status")) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCleanerDeletesOldRequests(t *testing.T) {
	t.Parallel()
	jane := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}
	minute := begin().Add(time.Minute)
	issued := decide(asks(t, apiClient, jane, client), certificatesv1.CertificateApproved, minute)
	issued.Status.Certificate = []byte("some")
	for name, c := range map[string]struct {
		r    request
		want time.Duration // 0: never
	}{
		"undecided":           {asks(t, apiClient, jane, client), 24 * time.Hour},
		"denied":              {decide(asks(t, apiClient, jane, client), certificatesv1.CertificateDenied, minute), time.Hour + time.Minute},
		"failed":              {decide(asks(t, apiClient, jane, client), certificatesv1.CertificateFailed, minute), time.Hour + time.Minute},
		"approved and signed": {issued, time.Hour + time.Minute},
		"approved":            {decide(asks(t, apiClient, jane, client), certificatesv1.CertificateApproved, minute), 0},
	} {
		store := storage.NewMemory(storage.MemoryOptions{})
		cleaner := NewCleaner()
		cleaner.Reset(store.Latest())
		key := put(t, store, c.r)
		rec := store.Latest().Get(key)
		cleaner.Handle(storage.Event{Record: rec})
		if c.want == 0 {
			if !cleaner.Wake().IsZero() {
				t.Errorf("%s: it goes at %v", name, cleaner.Wake())
			}
			continue
		}
		due := begin().Add(c.want)
		if !cleaner.Wake().Equal(due) || len(cleaner.Sync(nil, due.Add(-time.Second))) != 0 {
			t.Errorf("%s: it goes at %v, want %v", name, cleaner.Wake(), due)
		}
		got := cleaner.Sync(nil, due)
		if len(got) != 1 || got[0].Method != "DELETE" {
			t.Errorf("%s: %v", name, got)
		}
		cleaner.Handle(storage.Event{Record: rec, Deleted: true})
		if !cleaner.Wake().IsZero() || len(cleaner.Sync(nil, due)) != 0 {
			t.Errorf("%s: it is still known when it is gone", name)
		}
	}
}

// permitted allows a verb on one signer.
type permitted struct{ verb, signer string }

// Authorize implements auth.Authorizer.
func (p permitted) Authorize(_ context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	if a.Verb == p.verb && a.Name == p.signer && a.Resource == "signers" && a.Group == certificatesv1.GroupName {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

func TestAdmissionRequiresPermissionForTheSigner(t *testing.T) {
	t.Parallel()
	old := asks(t, "example.com/a", &x509.CertificateRequest{}, client)
	signed := old.DeepCopy()
	signed.Status.Certificate = []byte("x")
	for _, c := range []struct {
		may         permitted
		subresource string
		now         request
		disable     []string
		allowed     bool
	}{
		{permitted{"approve", "example.com/a"}, "approval", old, nil, true},
		{permitted{"approve", "example.com/*"}, "approval", old, nil, true},
		{permitted{"approve", "example.com/b"}, "approval", old, nil, false},
		{permitted{"sign", "example.com/a"}, "approval", old, nil, false},
		{permitted{}, "approval", old, []string{"CertificateApproval"}, true},
		{permitted{"sign", "example.com/a"}, "status", signed, nil, true},
		{permitted{"approve", "example.com/a"}, "status", signed, nil, false},
		{permitted{}, "status", old, nil, true},
		{permitted{}, "", old, nil, true},
	} {
		plugins, err := Plugins(component.Deps{Authorizer: c.may}).Without(c.disable...)
		if err != nil {
			t.Fatal(err)
		}
		err = plugins.Admission(nil).Validate(t.Context(), &resource.AdmissionRequest{
			Request:   &resource.Request{User: &auth.User{Name: "ann"}, Subresource: c.subresource, Name: "r", Resource: signingRequests()},
			Operation: resource.Update, Object: c.now, Old: old,
		})
		if (err == nil) != c.allowed {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
