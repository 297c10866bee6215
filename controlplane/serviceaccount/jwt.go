// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"crypto"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// claims are what a token says. The first part is common to all tokens (RFC
// 7519), the second to those that were asked for, the third to those in Secrets.
type claims struct {
	Audience  audience `json:"aud,omitempty"`
	Expires   *date    `json:"exp,omitempty"` // nil: never
	IssuedAt  *date    `json:"iat,omitempty"`
	Issuer    string   `json:"iss,omitempty"`
	ID        string   `json:"jti,omitempty"`
	NotBefore *date    `json:"nbf,omitempty"`
	Subject   string   `json:"sub,omitempty"`

	Bound *binding `json:"kubernetes.io,omitempty"`

	LegacyNamespace  string    `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	LegacySecret     string    `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	LegacyAccount    string    `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	LegacyAccountUID types.UID `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

// binding is what a token depends on.
type binding struct {
	Namespace string     `json:"namespace,omitempty"`
	Node      *reference `json:"node,omitempty"`
	Pod       *reference `json:"pod,omitempty"`
	Secret    *reference `json:"secret,omitempty"`
	Account   reference  `json:"serviceaccount"`
	// WarnAfter is when the token should have been replaced.
	WarnAfter date `json:"warnafter,omitempty"`
}

// reference is one object at one time.
type reference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// date is a time in seconds since 1970. A fraction is left out.
type date int64

// UnmarshalJSON implements [json.Unmarshaler].
func (d *date) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil {
		return errMalformed
	}
	*d = date(f)
	return nil
}

// audience is one name or several.
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		if one == nil {
			return errMalformed
		}
		*a = audience{*one}
		return nil
	}
	var several []*string
	if err := json.Unmarshal(data, &several); err != nil {
		return err
	}
	*a = audience{}
	for _, name := range several {
		if name == nil {
			return errMalformed
		}
		*a = append(*a, *name)
	}
	return nil
}

// header of a token.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid,omitempty"`

	// What no token of ours has: extensions that have to be understood (RFC 7515,
	// section 4.1.11), and a key to verify it with.
	Critical json.RawMessage `json:"crit,omitempty"`
	Key      json.RawMessage `json:"jwk,omitempty"`
}

// encode returns the signed token that says c.
func encode(c *claims, public *publicKey, signer crypto.Signer) (string, error) {
	head, err := json.Marshal(header{Algorithm: public.algorithm, KeyID: public.id})
	if err != nil {
		return "", fmt.Errorf("serviceaccount: encode a token: %w", err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("serviceaccount: encode a token: %w", err)
	}
	input := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	signature, err := public.sign(signer, input)
	if err != nil {
		return "", fmt.Errorf("serviceaccount: sign a token: %w", err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// unverified is a token that was taken apart; nothing that it says is to be
// believed.
type unverified struct {
	header    header
	claims    claims
	input     string
	signature []byte
}

// decode takes a token apart.
func decode(token string) (*unverified, error) {
	if strings.Count(token, ".") != 2 {
		return nil, errMalformed
	}
	parts := strings.Split(token, ".")
	u := &unverified{input: parts[0] + "." + parts[1]}
	head, headErr := base64.RawURLEncoding.DecodeString(parts[0])
	body, bodyErr := base64.RawURLEncoding.DecodeString(parts[1])
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if headErr != nil || bodyErr != nil || err != nil || !parse(head, &u.header) || !parse(body, &u.claims) ||
		u.header.Critical != nil || u.header.Key != nil {
		return nil, errMalformed
	}
	u.signature = signature
	return u, nil
}

// parse decodes a part of a token, whose names are case-sensitive and there once
// (RFC 7515, section 4).
func parse(part []byte, into any) bool {
	var whole any
	twice, err := kjson.UnmarshalStrict(part, &whole, kjson.DisallowDuplicateFields)
	return err == nil && len(twice) == 0 && kjson.UnmarshalCaseSensitivePreserveInts(part, into) == nil
}

// isSignedBy reports whether one of the keys has signed the token. A key is used
// for nothing but its own algorithm, regardless of the header of the token.
func (u *unverified) isSignedBy(keys []*publicKey) bool {
	for _, k := range keys {
		if u.header.KeyID != "" && u.header.KeyID != k.id || u.header.Algorithm != k.algorithm {
			continue
		}
		if k.verify(u.input, u.signature) {
			return true
		}
	}
	return false
}

// splitSignature takes an ECDSA signature in the form of X.509 apart.
func splitSignature(der []byte) (r, s *big.Int, err error) {
	var both struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &both); err != nil {
		return nil, nil, fmt.Errorf("serviceaccount: the signer does not sign as ECDSA keys do: %w", err)
	}
	return both.R, both.S, nil
}
