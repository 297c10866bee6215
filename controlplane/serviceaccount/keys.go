// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // registers the hashes of the larger curves
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
)

// Keys sign the tokens of ServiceAccounts and verify them.
type Keys struct {
	// Signer is the private key, RSA or ECDSA.
	Signer crypto.Signer
	// Verifiers are the public halves of further keys whose tokens are accepted,
	// such as that of the key before this one.
	Verifiers []crypto.PublicKey
}

// publicKey is a key that tokens can be verified with.
type publicKey struct {
	key crypto.PublicKey
	// id names the key in the header of a token and in the key set.
	id        string
	algorithm string // of RFC 7518
	hash      crypto.Hash
	size      int // of each half of an ECDSA signature, in bytes
}

// newPublicKey finds out what a key is good for.
func newPublicKey(key crypto.PublicKey) (*publicKey, error) {
	p := &publicKey{key: key, algorithm: "RS256", hash: crypto.SHA256}
	switch typed := key.(type) {
	case *rsa.PublicKey:
	case *ecdsa.PublicKey:
		switch typed.Curve {
		case elliptic.P256():
			p.algorithm, p.size = "ES256", 32
		case elliptic.P384():
			p.algorithm, p.hash, p.size = "ES384", crypto.SHA384, 48
		case elliptic.P521():
			p.algorithm, p.hash, p.size = "ES512", crypto.SHA512, 66
		default:
			return nil, ErrKeyType
		}
	default:
		return nil, fmt.Errorf("%w; this is a %T", ErrKeyType, key)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("serviceaccount: encode a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	p.id = base64.RawURLEncoding.EncodeToString(sum[:])
	return p, nil
}

// digest returns what is signed.
func (p *publicKey) digest(input string) []byte {
	h := p.hash.New()
	_, _ = io.WriteString(h, input) // a hash does not fail
	return h.Sum(nil)
}

// sign returns the signature of input in the form of RFC 7518. The same input
// gives the same signature.
func (p *publicKey) sign(signer crypto.Signer, input string) ([]byte, error) {
	chance := rand.Reader
	if _, ours := signer.(*ecdsa.PrivateKey); ours {
		chance = nil // by RFC 6979, from the key and the input
	}
	signature, err := signer.Sign(chance, p.digest(input), p.hash)
	if err != nil || p.size == 0 {
		return signature, err
	}
	r, s, err := splitSignature(signature)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 2*p.size)
	r.FillBytes(out[:p.size])
	s.FillBytes(out[p.size:])
	return out, nil
}

// verify reports whether a signature is that of input.
func (p *publicKey) verify(input string, signature []byte) bool {
	switch key := p.key.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, p.hash, p.digest(input), signature) == nil
	case *ecdsa.PublicKey:
		if len(signature) != 2*p.size {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:p.size]), new(big.Int).SetBytes(signature[p.size:])
		return ecdsa.Verify(key, p.digest(input), r, s)
	}
	return false
}

// webKey is a public key in the form of RFC 7517.
type webKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Curve     string `json:"crv,omitempty"`
	Algorithm string `json:"alg"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
}

func (p *publicKey) webKey() webKey {
	encode := base64.RawURLEncoding.EncodeToString
	w := webKey{Use: "sig", ID: p.id, Algorithm: p.algorithm}
	switch key := p.key.(type) {
	case *rsa.PublicKey:
		w.Type, w.N, w.E = "RSA", encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
	case *ecdsa.PublicKey:
		w.Type, w.Curve = "EC", key.Curve.Params().Name
		if point, err := key.Bytes(); err == nil { // 4, X, Y
			w.X, w.Y = encode(point[1:1+p.size]), encode(point[1+p.size:])
		}
	}
	return w
}
