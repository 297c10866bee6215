// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
	"github.com/steer-dev/steer/storage/durable"
)

// The files of a directory with keys. Each is written whole, and durable before the
// next one; the certificate of the authority follows from its key, so that the key
// is written first.
const (
	caFiles         = "ca"
	frontProxyFiles = "front-proxy-ca"
	peerFiles       = "peer-ca"
	keySuffix       = ".key"
	certSuffix      = ".crt"
	accountKeyFile  = "sa.key"
)

// keyFiles returns the names of the files.
func keyFiles() []string {
	return []string{caFiles + keySuffix, caFiles + certSuffix, frontProxyFiles + keySuffix, frontProxyFiles + certSuffix, peerFiles + keySuffix, peerFiles + certSuffix, accountKeyFile}
}

// OpenKeys returns the keys kept in a directory, which is made if it does not
// exist; what it lacks is made anew. A certificate of the authority that is missing
// beside its key is signed again, so that what was issued before stays good. Files
// that are damaged are refused, and so are certificates of other programs whose keys are
// missing. Private files have mode 0600, the directory 0700.
func OpenKeys(dir string) (*Keys, error) { return openKeys(dir, true) }

// errNoKeys: new keys would be other ones than the cluster's.
var errNoKeys = errors.New("controlplane: the store has the objects of a cluster, and this server lacks keys of it: copy the folder pki of one of its servers, or name a folder that has them with --cert-dir")

// openKeys makes no private key unless that is allowed.
func openKeys(dir string, create bool) (*Keys, error) {
	for _, name := range keyFiles() {
		if create || filepath.Ext(name) != keySuffix {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w (%s)", errNoKeys, filepath.Join(dir, name))
		}
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("controlplane: make the directory for the keys: %w", err)
	}
	if err := removeHalfWritten(dir); err != nil {
		return nil, err
	}
	ca, err := openAuthority(filepath.Join(dir, caFiles), caName)
	if err != nil {
		return nil, err
	}
	keys := &Keys{CA: ca.Certificate, Signer: ca.Signer}
	if keys.FrontProxy, err = openAuthority(filepath.Join(dir, frontProxyFiles), frontProxyCAName); err != nil {
		return nil, err
	}
	if keys.Peer, err = openAuthority(filepath.Join(dir, peerFiles), peerCAName); err != nil {
		return nil, err
	}
	keys.Accounts, err = openAccountKeys(filepath.Join(dir, accountKeyFile))
	return keys, err
}

// removeHalfWritten removes what a crash has left of writing the files: private
// keys without a certificate.
func removeHalfWritten(dir string) error {
	for _, name := range keyFiles() {
		left, err := filepath.Glob(filepath.Join(dir, "."+name+".*"))
		if err != nil {
			return fmt.Errorf("controlplane: look for files that a crash has left in %s: %w", dir, err)
		}
		for _, file := range left {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("controlplane: remove what a crash has left: %w", err)
			}
		}
	}
	return nil
}

// openAuthority reads an authority from a file with its key and one with its certificate,
// whose names it is given without their suffixes, and makes what is missing of it under
// the common name.
func openAuthority(files, name string) (none certificates.Authority, err error) {
	certFile, keyFile := files+certSuffix, files+keySuffix
	certPEM, certErr := os.ReadFile(certFile)
	keyPEM, keyErr := os.ReadFile(keyFile)
	switch {
	case errors.Is(keyErr, fs.ErrNotExist):
		if certErr == nil && !isNamed(certPEM, name) {
			return none, fmt.Errorf("controlplane: %s is of an authority whose key is not in %s: copy the key as well, or remove the certificate for a new authority", certFile, keyFile)
		}
		return createAuthority(certFile, keyFile, name)
	case keyErr == nil && errors.Is(certErr, fs.ErrNotExist):
		return certifyAuthority(certFile, keyFile, name, keyPEM)
	case certErr != nil || keyErr != nil:
		return none, fmt.Errorf("controlplane: read the keys: %w", errors.Join(certErr, keyErr))
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return none, fmt.Errorf("controlplane: the keys in %s are damaged: %w; restore them, or remove both files and hand out the new kubeconfig", filepath.Dir(files), err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return none, fmt.Errorf("controlplane: %s is not a certificate authority; remove it together with %s", certFile, keyFile)
	}
	return certificates.Authority{Certificate: pair.Leaf, Signer: signer}, nil
}

// isNamed reports whether a file has the certificate of an authority of a name, or none.
func isNamed(certPEM []byte, name string) bool {
	all, err := cert.ParseCertsPEM(certPEM)
	return err != nil || all[0].Subject.CommonName == name
}

// createAuthority makes a new authority.
func createAuthority(certFile, keyFile, name string) (none certificates.Authority, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return none, fmt.Errorf("controlplane: make the key of a certificate authority: %w", err)
	}
	authority, err := newAuthority(signer, name)
	if err != nil {
		return none, err
	}
	key, err := encodeKey(signer)
	if err != nil {
		return none, err
	}
	// A certificate without its key is of an authority of this program that is gone.
	err = os.Remove(certFile)
	if err == nil {
		err = durable.SyncDir(filepath.Dir(certFile))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("controlplane: remove a certificate without a key: %w", err)
	}
	if err := writeKeyFile(keyFile, key); err != nil {
		return none, err
	}
	return authority, writeKeyFile(certFile, encodeCertificate(authority.Certificate.Raw))
}

// certifyAuthority signs the certificate of an authority whose key is there.
func certifyAuthority(certFile, keyFile, name string, keyPEM []byte) (none certificates.Authority, err error) {
	signer, err := parseKey(keyPEM)
	if err != nil {
		return none, fmt.Errorf("controlplane: %s is damaged: %w; restore it together with %s, or remove it and hand out the new kubeconfig", keyFile, err, certFile)
	}
	authority, err := newAuthority(signer, name)
	if err != nil {
		return none, err
	}
	return authority, writeKeyFile(certFile, encodeCertificate(authority.Certificate.Raw))
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
		return made, writeKeyFile(file, text)
	case err != nil:
		return serviceaccount.Keys{}, fmt.Errorf("controlplane: read the keys: %w", err)
	}
	signer, err := parseKey(text)
	if err != nil {
		return serviceaccount.Keys{}, fmt.Errorf("controlplane: %s is damaged: %w; restore it, or remove it and hand out new tokens", file, err)
	}
	return serviceaccount.Keys{Signer: signer}, nil
}

// parseKey reads a private key.
func parseKey(text []byte) (crypto.Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("it is no key that signs")
	}
	return signer, nil
}

func writeKeyFile(file string, content []byte) error {
	if err := durable.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("controlplane: write %s: %w", file, err)
	}
	return nil
}
