// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/storage"
)

// legacyIssuer is the issuer of tokens in Secrets, in every cluster.
const legacyIssuer = "kubernetes/serviceaccount"

// leeway is how long what a token depends on may have been marked as deleted.
const leeway = time.Minute

// Names of users and of their extra attributes.
const (
	UserPrefix = "system:serviceaccount:"
	AllGroup   = "system:serviceaccounts"

	extraPodName  = "authentication.kubernetes.io/pod-name"
	extraPodUID   = "authentication.kubernetes.io/pod-uid"
	extraNodeName = "authentication.kubernetes.io/node-name"
	extraNodeUID  = "authentication.kubernetes.io/node-uid"
)

// Options of [Tokens]. Store, Keys, Issuers and NewID are required.
type Options struct {
	// Store holds accounts, Pods, Secrets and Nodes.
	Store storage.Viewer
	// Keys are asked for when the first token is issued or seen.
	Keys func() (*Keys, error)
	// Issuers of the tokens that are accepted; new ones are of the first.
	Issuers []string
	// Audiences of tokens that are asked for without. Empty: the issuers.
	Audiences []string
	// MaxLife bounds the life of a token; more is shortened, with a warning. 0:
	// as long as the API allows.
	MaxLife time.Duration
	// ExactLife keeps tokens for Pods from being valid for a year longer than
	// they should be used, which gives old clients time.
	ExactLife bool
	// NewID returns the name of a new token.
	NewID func() types.UID
	// Uses notes on which day tokens in Secrets were last used. nil: that is not noted.
	Uses *Uses
}

// Tokens issues the tokens of ServiceAccounts and authenticates them. It is safe
// for concurrent use.
type Tokens struct {
	o    Options
	keys func() (*keyring, error)
}

// keyring is [Keys] ready for use.
type keyring struct {
	signer crypto.Signer
	public *publicKey   // of the signer
	all    []*publicKey // which tokens are verified with
}

var _ auth.TokenAuthenticator = (*Tokens)(nil)

// NewTokens returns what issues and authenticates tokens.
func NewTokens(o Options) *Tokens {
	if len(o.Audiences) == 0 {
		o.Audiences = o.Issuers
	}
	return &Tokens{o: o, keys: sync.OnceValues(func() (*keyring, error) {
		k, err := o.Keys()
		if err != nil {
			return nil, err
		}
		public, err := newPublicKey(k.Signer.Public())
		if err != nil {
			return nil, err
		}
		ring := &keyring{signer: k.Signer, public: public, all: []*publicKey{public}}
		for _, v := range k.Verifiers {
			p, err := newPublicKey(v)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(ring.all, func(known *publicKey) bool { return known.id == p.id }) {
				ring.all = append(ring.all, p)
			}
		}
		return ring, nil
	})}
}

// Audiences are the names of the API server in tokens.
func (t *Tokens) Audiences() []string { return t.o.Audiences }

// sign returns the token that says c.
func (t *Tokens) sign(c *claims) (string, error) {
	ring, err := t.keys()
	if err != nil {
		return "", err
	}
	return encode(c, ring.public, ring.signer)
}

// AuthenticateToken implements [auth.TokenAuthenticator].
func (t *Tokens) AuthenticateToken(ctx context.Context, token string, audiences []string) (*auth.User, []string, error) {
	u, err := decode(token)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // it is of another form, not wrong
	}
	legacy := u.claims.Issuer == legacyIssuer
	if !legacy && !slices.Contains(t.o.Issuers, u.claims.Issuer) {
		return nil, nil, nil
	}
	ring, err := t.keys()
	if err != nil {
		return nil, nil, err
	}
	if !u.isSignedBy(ring.all) {
		return nil, nil, errors.New("failed to verify signature")
	}
	meant := []string(u.claims.Audience)
	if legacy || len(meant) == 0 {
		meant = t.o.Audiences
	}
	if len(audiences) > 0 {
		meant = slices.DeleteFunc(slices.Clone(meant), func(a string) bool { return !slices.Contains(audiences, a) })
		if len(meant) == 0 {
			return nil, nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", []string(u.claims.Audience), audiences)
		}
	}
	of, err := u.claims.times(time.Now())
	if err != nil {
		return nil, nil, err
	}
	// Only what is signed comes here: others cost no read of the store.
	if err := t.freshen(ctx, of, token); err != nil {
		return nil, nil, err
	}
	check := checker{view: t.o.Store.Latest(), now: time.Now()}
	var user *auth.User
	if legacy {
		var kept *corev1.Secret
		if kept, err = check.kept(&u.claims, token); err == nil {
			t.o.Uses.note(check.view, &u.claims, check.now)
			user, err = check.legacy(ctx, &u.claims, kept)
		}
	} else {
		user, err = check.bound(&u.claims)
	}
	if err != nil {
		return nil, nil, err
	}
	return user, meant, nil
}

// freshen waits until the store shows what was acknowledged before a token came, deletions
// of what it is bound to included.
func (t *Tokens) freshen(ctx context.Context, of *auth.User, token string) error {
	if arrival := auth.ArrivalFrom(ctx); arrival != nil {
		return arrival.Freshen(ctx, of, token)
	}
	return t.o.Store.Sync(ctx, 0)
}

// times checks what a token says by itself, and returns the user that it is of.
func (s *claims) times(at time.Time) (*auth.User, error) {
	if s.Issuer == legacyIssuer {
		account := reference{Name: s.LegacyAccount, UID: s.LegacyAccountUID}
		if s.LegacyNamespace == "" || s.LegacySecret == "" || account.Name == "" || account.UID == "" ||
			s.Subject != UserPrefix+s.LegacyNamespace+":"+account.Name {
			return nil, errMalformed
		}
		return userOf(s.LegacyNamespace, account), nil
	}
	b := s.Bound
	if b == nil || b.Namespace == "" || b.Account.Name == "" {
		return nil, errMalformed
	}
	if s.Expires != nil && date(at.Unix()) > *s.Expires {
		return nil, errors.New("service account token has expired")
	}
	soon := date(at.Add(leeway).Unix())
	if s.NotBefore != nil && *s.NotBefore > soon {
		return nil, errors.New("service account token is not valid yet")
	}
	if s.IssuedAt != nil && *s.IssuedAt > soon {
		return nil, errors.New("service account token is issued in the future")
	}
	return userOf(b.Namespace, b.Account), nil
}

// checker holds tokens to the present.
type checker struct {
	view storage.View
	now  time.Time
}

// life is the metadata of an object that reports whether it is still there.
type life struct {
	Metadata struct {
		UID      types.UID    `json:"uid"`
		Deletion *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
}

// find returns the identity of a stored object; ok is false when there is none.
func (c checker) find(key storage.Key) (uid types.UID, gone, ok bool) {
	rec := c.view.Get(key)
	var l life
	if rec == nil || json.Unmarshal(rec.Value, &l) != nil {
		return "", false, false
	}
	d := l.Metadata.Deletion
	return l.Metadata.UID, d != nil && d.Time.Before(c.now.Add(-leeway)), true
}

// bound checks what a token that was asked for is bound to.
func (c checker) bound(s *claims) (*auth.User, error) {
	b := s.Bound
	if err := c.account(b.Namespace, b.Account); err != nil {
		return nil, err
	}
	user := userOf(b.Namespace, b.Account)
	user.Extra = map[string][]string{}
	if s.ID != "" {
		user.Extra[auth.CredentialID] = []string{"JTI=" + s.ID}
	}
	if r := b.Secret; r != nil {
		if err := c.object("secret", "secrets", b.Namespace+"/"+r.Name, *r); err != nil {
			return nil, err
		}
	}
	if r := b.Pod; r != nil {
		if err := c.object("pod", "pods", b.Namespace+"/"+r.Name, *r); err != nil {
			return nil, err
		}
		user.Extra[extraPodName], user.Extra[extraPodUID] = []string{r.Name}, []string{string(r.UID)}
	}
	if r := b.Node; r != nil {
		// Of a Pod's token the node is information: the Pod is what it depends on.
		if b.Pod == nil {
			if err := c.object("node", "nodes", r.Name, *r); err != nil {
				return nil, err
			}
		}
		user.Extra[extraNodeName] = []string{r.Name}
		if r.UID != "" {
			user.Extra[extraNodeUID] = []string{string(r.UID)}
		}
	}
	return user, nil
}

// account checks that an account is still the one that a token is for.
func (c checker) account(namespace string, r reference) error {
	uid, gone, ok := c.find(storage.Key{Bucket: accounts, Name: namespace + "/" + r.Name})
	switch {
	case !ok:
		return apierrors.NewNotFound(schema.GroupResource{Resource: accounts}, r.Name)
	case uid != r.UID:
		return fmt.Errorf("service account UID (%s) does not match claim (%s)", uid, r.UID)
	case gone:
		return fmt.Errorf("service account %s/%s has been deleted", namespace, r.Name)
	}
	return nil
}

// object checks that what a token is bound to is still there.
func (c checker) object(kind, bucket, name string, r reference) error {
	uid, gone, ok := c.find(storage.Key{Bucket: bucket, Name: name})
	switch {
	case !ok || gone:
		return errInvalidated
	case uid != r.UID:
		return fmt.Errorf("%s UID (%s) does not match service account %s ref claim (%s)", kind, uid, kind, r.UID)
	}
	return nil
}

// kept returns the Secret that keeps a token, which holds as long as it is in there.
func (c checker) kept(s *claims, token string) (*corev1.Secret, error) {
	rec := c.view.Get(storage.Key{Bucket: "secrets", Name: s.LegacyNamespace + "/" + s.LegacySecret})
	var secret corev1.Secret
	if rec == nil || json.Unmarshal(rec.Value, &secret) != nil || secret.DeletionTimestamp != nil {
		return nil, errors.New("token has been invalidated")
	}
	if string(secret.Data[corev1.ServiceAccountTokenKey]) != token {
		return nil, errors.New("token does not match server's copy")
	}
	return &secret, c.account(s.LegacyNamespace, reference{Name: s.LegacyAccount, UID: s.LegacyAccountUID})
}

// legacy returns the user of a token that is kept in a Secret, and warns of one that the account
// lists: Kubernetes made such Secrets by itself until 1.24.
func (c checker) legacy(ctx context.Context, s *claims, secret *corev1.Secret) (*auth.User, error) {
	if since := secret.Labels["kubernetes.io/legacy-token-invalid-since"]; since != "" {
		return nil, fmt.Errorf("the token in secret %s/%s for service account %s/%s has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
			s.LegacyNamespace, s.LegacySecret, s.LegacyNamespace, s.LegacyAccount)
	}
	var account corev1.ServiceAccount
	rec := c.view.Get(storage.Key{Bucket: accounts, Name: s.LegacyNamespace + "/" + s.LegacyAccount})
	if arrival := auth.ArrivalFrom(ctx); arrival != nil && rec != nil && json.Unmarshal(rec.Value, &account) == nil &&
		slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == s.LegacySecret }) {
		arrival.Warn("Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.")
	}
	return userOf(s.LegacyNamespace, reference{Name: s.LegacyAccount, UID: s.LegacyAccountUID}), nil
}

// userOf returns the user that an account is.
func userOf(namespace string, account reference) *auth.User {
	return &auth.User{
		Name: UserPrefix + namespace + ":" + account.Name, UID: string(account.UID),
		Groups: []string{AllGroup, AllGroup + ":" + namespace, auth.Authenticated},
	}
}
