// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/steer-dev/steer/controlplane/serviceaccount"
)

// Keys are the secrets of a plane: a certificate authority that signs the
// certificates of its server and of its users, and the key that signs the tokens
// of ServiceAccounts. They always come from the
// operating system's randomness or from outside, never from Options.Entropy.
type Keys struct {
	// CA is the certificate of the authority.
	CA *x509.Certificate
	// Signer is its private key.
	Signer crypto.Signer
	// Clients are further authorities whose client certificates are accepted.
	// nil: CA's alone.
	Clients []*x509.Certificate
	// Serving is the certificate that the listener shows. nil: one that CA signs,
	// renewed before it ends.
	Serving *tls.Certificate
	// Accounts sign and verify the tokens of ServiceAccounts. Without a Signer
	// there is one for as long as the plane lives.
	Accounts serviceaccount.Keys
}

// The common names of certificates. That of the authority is no other's: OpenSSL
// takes a certificate whose issuer is its subject for self-signed.
const (
	caName     = "steer-ca"
	serverName = "kube-apiserver"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew is how far back certificates are valid, for clients whose clock
	// is behind.
	clockSkew = time.Hour
)

// NewKeys makes new keys.
func NewKeys() (*Keys, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("controlplane: make the key of the certificate authority: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	keys, err := signCA(signer, serial, caName, now.Add(-clockSkew), now.Add(caLifetime))
	if err != nil {
		return nil, err
	}
	keys.Accounts, err = newAccountKeys()
	return keys, err
}

// newAccountKeys makes a new key for the tokens of ServiceAccounts.
func newAccountKeys() (serviceaccount.Keys, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return serviceaccount.Keys{}, fmt.Errorf("controlplane: make the key of the service accounts: %w", err)
	}
	return serviceaccount.Keys{Signer: signer}, nil
}

// withAccounts returns keys that can sign the tokens of ServiceAccounts.
func (k *Keys) withAccounts() (*Keys, error) {
	if k.Accounts.Signer != nil {
		return k, nil
	}
	made, err := newAccountKeys()
	if err != nil {
		return nil, err
	}
	made.Verifiers = k.Accounts.Verifiers
	whole := *k
	whole.Accounts = made
	return &whole, nil
}

// testKeysName is the common name that gives the test keys away.
const testKeysName = "steer test authority, known to everybody"

// TestKeys returns the same keys every time. They are for deterministic runs
// inside one process; a plane with a listener refuses them.
func TestKeys() (*Keys, error) {
	seed := sha256.Sum256([]byte(testKeysName))
	signer := ed25519.NewKeyFromSeed(seed[:])
	from := time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC)
	keys, err := signCA(signer, big.NewInt(1), testKeysName, from, from.AddDate(200, 0, 0))
	if err != nil {
		return nil, err
	}
	accounts, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		return nil, fmt.Errorf("controlplane: make the test keys: %w", err)
	}
	keys.Accounts.Signer = accounts
	return keys, nil
}

func signCA(signer crypto.Signer, serial *big.Int, name string, from, to time.Time) (*Keys, error) {
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("controlplane: sign the certificate authority: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("controlplane: sign the certificate authority: %w", err)
	}
	return &Keys{CA: ca, Signer: signer}, nil
}

// areForTests tells the keys of [TestKeys].
func (k *Keys) areForTests() bool { return k.CA.Subject.CommonName == testKeysName }

// OpenKeys returns the keys kept in a directory, which is made, with new keys,
// when it holds none. Private files have mode 0600, the directory 0700.
func OpenKeys(dir string) (*Keys, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	certPEM, certErr := os.ReadFile(certFile)
	keyPEM, keyErr := os.ReadFile(keyFile)
	switch {
	case errors.Is(keyErr, fs.ErrNotExist):
		// The key is written last: without one there is nothing to lose.
		return createKeys(dir, certFile, keyFile)
	case certErr != nil || keyErr != nil:
		return nil, fmt.Errorf("controlplane: read the keys: %w", errors.Join(certErr, keyErr))
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("controlplane: the keys in %s are damaged: %w; restore them, or remove both files and hand out the new kubeconfig", dir, err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("controlplane: %s is not a certificate authority; remove it together with %s", certFile, keyFile)
	}
	accounts, err := openAccountKeys(filepath.Join(dir, "sa.key"))
	return &Keys{CA: pair.Leaf, Signer: signer, Accounts: accounts}, err
}

// openAccountKeys reads the key of the service accounts, and makes one where
// there is none.
func openAccountKeys(file string) (serviceaccount.Keys, error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made, err := newAccountKeys()
		if err != nil {
			return made, err
		}
		if text, err = encodeKey(made.Signer); err != nil {
			return made, err
		}
		return made, writeFile(file, text, 0o600)
	case err != nil:
		return serviceaccount.Keys{}, fmt.Errorf("controlplane: read the keys: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return serviceaccount.Keys{}, fmt.Errorf("controlplane: %s is damaged: restore it, or remove it and hand out new tokens", file)
	}
	return serviceaccount.Keys{Signer: signer}, nil
}

func createKeys(dir, certFile, keyFile string) (*Keys, error) {
	keys, err := NewKeys()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("controlplane: make the directory for the keys: %w", err)
	}
	key, err := encodeKey(keys.Signer)
	if err != nil {
		return nil, err
	}
	if keys.Accounts, err = openAccountKeys(filepath.Join(dir, "sa.key")); err != nil {
		return nil, err
	}
	if err := writeFile(certFile, encodeCertificate(keys.CA.Raw), 0o600); err != nil {
		return nil, err
	}
	if err := writeFile(keyFile, key, 0o600); err != nil {
		return nil, err
	}
	return keys, nil
}

// CertificatePEM returns what clients trust: the certificate of the authority
// and, if the listener shows another's, that with its chain.
func (k *Keys) CertificatePEM() []byte {
	out := encodeCertificate(k.CA.Raw)
	if k.Serving != nil {
		for _, der := range k.Serving.Certificate {
			out = append(out, encodeCertificate(der)...)
		}
	}
	return out
}

// clients returns the authorities of client certificates.
func (k *Keys) clients() []*x509.Certificate {
	return slices.Concat(k.Clients, []*x509.Certificate{k.CA})
}

// pool returns the same, for TLS.
func (k *Keys) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range k.clients() {
		pool.AddCert(c)
	}
	return pool
}

// issue signs a certificate for a new key.
func (k *Keys) issue(subject pkix.Name, hosts []string, usage x509.ExtKeyUsage) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("controlplane: make a key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return tls.Certificate{}, err
	}
	id, err := keyID(key.Public())
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, SubjectKeyId: id,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(leafLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(k.CA.NotAfter) {
		template.NotAfter = k.CA.NotAfter
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, k.CA, key.Public(), k.Signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("controlplane: sign a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("controlplane: sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// keyID returns the identifier of a public key (RFC 7093, section 2, method 4).
func keyID(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("controlplane: encode a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return sum[:20], nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("controlplane: make a serial number: %w", err)
	}
	return serial, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeCertificates(all []*x509.Certificate) []byte {
	var out []byte
	for _, c := range all {
		out = append(out, encodeCertificate(c.Raw)...)
	}
	return out
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("controlplane: encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// writeFile replaces a file in one step: readers see the old content or the new
// one, never a part.
func writeFile(path string, content []byte, mode fs.FileMode) (err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return os.Chmod(path, mode)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("controlplane: write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // the first error is the one to report
		}
	}()
	_, writeErr := temp.Write(content)
	if err := errors.Join(writeErr, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("controlplane: write %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("controlplane: write %s: %w", path, err)
	}
	return nil
}
