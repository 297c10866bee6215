// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Paths of the documents by which others verify tokens (OpenID Connect
// Discovery 1.0, RFC 7517).
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeySetPath        = "/openid/v1/jwks"
)

// configuration is the part of the discovery document that verifiers need.
type configuration struct {
	Issuer        string   `json:"issuer"`
	KeySet        string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// Configuration answers [ConfigurationPath]. keySet returns the URL at which
// clients find [KeySetPath].
func (t *Tokens) Configuration(keySet func() string) http.Handler {
	return t.document(ConfigurationPath, "application/json", func(ring *keyring) any {
		c := configuration{
			Issuer: t.o.Issuers[0], KeySet: keySet(), ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"},
		}
		seen := map[string]bool{}
		for _, k := range ring.all {
			if !seen[k.algorithm] {
				c.Algorithms = append(c.Algorithms, k.algorithm)
			}
			seen[k.algorithm] = true
		}
		return c
	})
}

// KeySet answers [KeySetPath].
func (t *Tokens) KeySet() http.Handler {
	return t.document(KeySetPath, "application/jwk-set+json", func(ring *keyring) any {
		set := struct {
			Keys []webKey `json:"keys"`
		}{}
		for _, k := range ring.all {
			set.Keys = append(set.Keys, k.webKey())
		}
		return set
	})
}

// document answers a GET for a path, with or without a slash at its end, with a
// document that every cache may keep for an hour.
func (t *Tokens) document(path, media string, content func(*keyring) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.TrimSuffix(r.URL.Path, "/") != path {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
			return
		}
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
			return
		}
		if accept := r.Header.Get("Accept"); accept != "" && goautoneg.Negotiate(accept, []string{media}) == "" {
			refuse(w, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+media)
			return
		}
		ring, err := t.keys()
		if err != nil {
			refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
			return
		}
		body, err := json.Marshal(content(ring))
		if err != nil {
			refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
			return
		}
		w.Header().Set("Content-Type", media)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body) // the client is gone
	})
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{ // the client is gone
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	})
}
