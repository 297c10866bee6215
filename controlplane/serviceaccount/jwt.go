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
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// claims are what a token says. The first part is common to all tokens (RFC
// 7519), the second to those that were asked for, the third to those in Secrets.
type claims struct {
	Audience  audience `json:"aud,omitempty"`
	Expires   int64    `json:"exp,omitempty"` // all times in seconds since 1970
	IssuedAt  int64    `json:"iat,omitempty"`
	Issuer    string   `json:"iss,omitempty"`
	ID        string   `json:"jti,omitempty"`
	NotBefore int64    `json:"nbf,omitempty"`
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
	WarnAfter int64 `json:"warnafter,omitempty"`
}

// reference is one object at one time.
type reference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// audience is one name or several.
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// header of a token.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid,omitempty"`
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
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errMalformed
	}
	u := &unverified{input: parts[0] + "." + parts[1]}
	head, headErr := base64.RawURLEncoding.DecodeString(parts[0])
	body, bodyErr := base64.RawURLEncoding.DecodeString(parts[1])
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if headErr != nil || bodyErr != nil || err != nil ||
		json.Unmarshal(head, &u.header) != nil || json.Unmarshal(body, &u.claims) != nil {
		return nil, errMalformed
	}
	u.signature = signature
	return u, nil
}

// isSignedBy tells whether one of the keys has signed the token. A key is used
// for nothing but its own algorithm, whatever the token says.
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
