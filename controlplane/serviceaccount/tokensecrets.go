// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// TokenSecrets is the controller of Secrets of the type
// kubernetes.io/service-account-token: it fills them with a token that does not
// expire, and deletes those whose account is gone.
type TokenSecrets struct {
	tokens *Tokens
	ca     func() ([]byte, error)
	// holders are the Secrets by the account that they name.
	holders map[storage.Key]step.KeySet
	due     step.KeySet
}

var _ step.Controller = (*TokenSecrets)(nil)

// NewTokenSecrets returns the controller. The tokens are of t, the certificates
// beside them, in PEM, those that ca returns.
func NewTokenSecrets(t *Tokens, ca func() ([]byte, error)) *TokenSecrets {
	s := &TokenSecrets{tokens: t, ca: ca}
	s.forget()
	return s
}

func (s *TokenSecrets) forget() {
	s.holders, s.due = map[storage.Key]step.KeySet{}, step.KeySet{}
}

// Name implements [step.Controller].
func (s *TokenSecrets) Name() string { return "serviceaccount-token-controller" }

// Reset implements [step.Controller].
func (s *TokenSecrets) Reset(view storage.View) {
	s.forget()
	for rec := range view.Ascend("secrets", "", "") {
		s.see(rec)
	}
}

// Filter implements [step.Controller].
func (s *TokenSecrets) Filter(e storage.Event) bool {
	switch e.Record.Key.Bucket {
	case "secrets":
		return mayHold(e.Record) || e.Previous != nil && mayHold(e.Previous)
	case accounts:
		return len(s.holders[e.Record.Key]) > 0
	}
	return false
}

// Handle implements [step.Controller].
func (s *TokenSecrets) Handle(e storage.Event) {
	switch e.Record.Key.Bucket {
	case "secrets":
		if e.Previous != nil {
			if secret := tokenSecret(e.Previous); secret != nil {
				account := accountOf(secret)
				delete(s.holders[account], e.Record.Key)
				if len(s.holders[account]) == 0 {
					delete(s.holders, account)
				}
			}
		}
		if e.Deleted {
			delete(s.due, e.Record.Key)
			return
		}
		s.see(e.Record)
	case accounts:
		for secret := range s.holders[e.Record.Key] {
			s.due.Add(secret)
		}
	}
}

func (s *TokenSecrets) see(rec *storage.Record) {
	secret := tokenSecret(rec)
	if secret == nil {
		return
	}
	account := accountOf(secret)
	if s.holders[account] == nil {
		s.holders[account] = step.KeySet{}
	}
	s.holders[account].Add(rec.Key)
	s.due.Add(rec.Key)
}

// mayHold reports whether a Secret may be for a token.
func mayHold(rec *storage.Record) bool {
	return bytes.Contains(rec.Value, []byte(corev1.SecretTypeServiceAccountToken))
}

// tokenSecret decodes a Secret that is for a token; nil for any other. Most are
// not, and not decoded.
func tokenSecret(rec *storage.Record) *corev1.Secret {
	if !mayHold(rec) {
		return nil
	}
	secret := &corev1.Secret{}
	if json.Unmarshal(rec.Value, secret) != nil || secret.Type != corev1.SecretTypeServiceAccountToken {
		return nil
	}
	return secret
}

func secretResource() step.Resource {
	return step.Resource{Bucket: "secrets", Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true}
}

func accountOf(secret *corev1.Secret) storage.Key {
	return storage.Key{Bucket: accounts, Name: secret.Namespace + "/" + secret.Annotations[corev1.ServiceAccountNameKey]}
}

// Sync implements [step.Controller].
func (s *TokenSecrets) Sync(view storage.View, _ time.Time) []step.Request {
	var out []step.Request
	for _, key := range s.due.Sorted() {
		if rec := view.Get(key); rec != nil {
			if r, needed := s.mend(view, rec); needed {
				out = append(out, r)
			}
		}
	}
	clear(s.due)
	return out
}

// mend returns the request that makes a Secret as it should be.
func (s *TokenSecrets) mend(view storage.View, rec *storage.Record) (r step.Request, needed bool) {
	secret := tokenSecret(rec)
	if secret == nil || secret.DeletionTimestamp != nil {
		return r, false
	}
	resource := secretResource()
	about := step.Subject{Key: rec.Key}
	var account corev1.ServiceAccount
	holder := view.Get(accountOf(secret))
	wanted := secret.Annotations[corev1.ServiceAccountUIDKey]
	if holder == nil || json.Unmarshal(holder.Value, &account) != nil || wanted != "" && wanted != string(account.UID) {
		options, err := json.Marshal(metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
		})
		return step.Delete(step.ControllerManager, resource.Object(rec.Key), options, about), err == nil
	}
	data, err := s.data(secret, &account)
	if err != nil || maps.EqualFunc(data, secret.Data, bytes.Equal) && wanted != "" {
		return r, false // without keys there are no tokens: the listener has said so
	}
	secret.Data = data
	secret.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	body, err := json.Marshal(secret)
	return step.Put(step.ControllerManager, resource.Object(rec.Key), body, about), err == nil
}

// data returns what a Secret should hold. A token that is there stays.
func (s *TokenSecrets) data(secret *corev1.Secret, account *corev1.ServiceAccount) (map[string][]byte, error) {
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	roots, err := s.ca()
	if err != nil {
		return nil, err
	}
	data[corev1.ServiceAccountRootCAKey] = roots
	data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	if len(data[corev1.ServiceAccountTokenKey]) > 0 {
		return data, nil
	}
	token, err := s.tokens.sign(&claims{
		Issuer: legacyIssuer, Subject: UserPrefix + secret.Namespace + ":" + account.Name,
		LegacyNamespace: secret.Namespace, LegacySecret: secret.Name, LegacyAccount: account.Name, LegacyAccountUID: account.UID,
	})
	data[corev1.ServiceAccountTokenKey] = []byte(token)
	return data, err
}

// Done implements [step.Controller].
func (s *TokenSecrets) Done(r step.Request, err error) {
	if err != nil {
		s.due.Add(r.Subject.Key)
	}
}

// sortedKeys returns the keys of a set in order.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
