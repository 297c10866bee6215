// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package parts_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/rest"
	kube "k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
	"github.com/steer-dev/steer/storage"
)

const issuer = "https://issuer"

// accounts are the objects that tokens are bound to, as both authenticators read
// them.
type accounts struct {
	*storage.Memory
	testing.TB
}

func (a accounts) put(bucket, name string, object any) {
	a.Helper()
	value, err := json.Marshal(object)
	if err != nil {
		a.Fatal(err)
	}
	if _, err := a.Commit(context.Background(), storage.Write{Key: storage.Key{Bucket: bucket, Name: name}, Value: value, Expect: storage.AnyRevision}); err != nil {
		a.Fatal(err)
	}
}

func read[T any](a accounts, bucket, name string) (*T, error) {
	record := a.Get(storage.Key{Bucket: bucket, Name: name})
	if record == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: bucket}, name)
	}
	into := new(T)
	return into, json.Unmarshal(record.Value, into)
}

func (a accounts) GetServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return read[corev1.ServiceAccount](a, "serviceaccounts", namespace+"/"+name)
}

func (a accounts) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	return read[corev1.Pod](a, "pods", namespace+"/"+name)
}

func (a accounts) GetSecret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return read[corev1.Secret](a, "secrets", namespace+"/"+name)
}

func (a accounts) GetNode(_ context.Context, name string) (*corev1.Node, error) {
	return read[corev1.Node](a, "nodes", name)
}

func (a accounts) GetValidatingWebhookConfiguration(_ context.Context, name string) (*admissionv1.ValidatingWebhookConfiguration, error) {
	return read[admissionv1.ValidatingWebhookConfiguration](a, "validatingwebhookconfigurations", name)
}

func (a accounts) GetMutatingWebhookConfiguration(_ context.Context, name string) (*admissionv1.MutatingWebhookConfiguration, error) {
	return read[admissionv1.MutatingWebhookConfiguration](a, "mutatingwebhookconfigurations", name)
}

// bench is both authenticators with the same keys, and a key that they do not know.
type bench struct {
	signers []crypto.Signer
	ours    *serviceaccount.Tokens
	theirs  authenticator.Token
}

func newBench(t testing.TB) *bench {
	t.Helper()
	must := func(key crypto.Signer, err error) crypto.Signer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	b := &bench{}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521(), elliptic.P256()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		b.signers = append(b.signers, must(key, err))
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	b.signers = slices.Insert(b.signers, 0, must(key, err)) // the first one is of no plane

	known := b.signers[:len(b.signers)-1]
	a := accounts{storage.NewMemory(storage.MemoryOptions{}), t}
	meta := func(name, uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(uid)}
	}
	gone := metav1.NewTime(time.Now().Add(-time.Hour))
	leaving := meta("leaving", "u")
	leaving.DeletionTimestamp = &gone
	a.put("serviceaccounts", "a/bot", &corev1.ServiceAccount{ObjectMeta: meta("bot", "u")})
	a.put("serviceaccounts", "a/leaving", &corev1.ServiceAccount{ObjectMeta: leaving})
	a.put("pods", "a/p", &corev1.Pod{ObjectMeta: meta("p", "v")})
	a.put("pods", "a/leaving", &corev1.Pod{ObjectMeta: leaving})
	a.put("secrets", "a/s", &corev1.Secret{ObjectMeta: meta("s", "w")})
	a.put("nodes", "n", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "x"}})

	keys := &serviceaccount.Keys{Signer: known[0]}
	var public []any
	for i, signer := range known {
		if public = append(public, signer.Public()); i > 0 {
			keys.Verifiers = append(keys.Verifiers, signer.Public())
		}
	}
	b.ours = serviceaccount.NewTokens(serviceaccount.Options{
		Store: a.Memory, Keys: func() (*serviceaccount.Keys, error) { return keys, nil }, Issuers: []string{issuer},
		NewID: func() types.UID { return "id" },
	})
	getter, err := kube.StaticPublicKeysGetter(public)
	if err != nil {
		t.Fatal(err)
	}
	b.theirs = kube.JWTTokenAuthenticator([]string{issuer}, getter, authenticator.Audiences{issuer}, kube.NewValidator(a))
	return b
}

// sameVerdict shows a token to both.
func (b *bench) sameVerdict(t *testing.T, token string) (accepted bool) {
	t.Helper()
	user, audiences, err := b.ours.AuthenticateToken(t.Context(), token, []string{issuer})
	response, ok, wantErr := b.theirs.AuthenticateToken(t.Context(), token)
	if (user != nil) != ok {
		t.Fatalf("%+v, %v, want %v, %v:\n%s", user, err, ok, wantErr, spelled(token))
	}
	if !ok {
		return false
	}
	if user.Name != response.User.GetName() || user.UID != response.User.GetUID() || !slices.Equal(audiences, response.Audiences) {
		t.Fatalf("%s is of %+v for %q, want %+v for %q", spelled(token), user, audiences, response.User, response.Audiences)
	}
	for name, values := range response.User.GetExtra() {
		if !slices.Equal(user.Extra[name], values) {
			t.Fatalf("%s: %s is %q, want %q", spelled(token), name, user.Extra[name], values)
		}
	}
	return true
}

// spelled is what a token says.
func spelled(token string) (text string) {
	parts := strings.Split(token, ".")
	for _, part := range parts[:min(2, len(parts))] {
		decoded, err := base64.RawURLEncoding.DecodeString(part)
		text += fmt.Sprintf("%s, %v\n", decoded, err)
	}
	return text
}

// signed is a token with any header and claims, signed by a key in a way of its kind.
func signed(t testing.TB, signer crypto.Signer, header, claims string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	input := encode([]byte(header)) + "." + encode([]byte(claims))
	hash, size := crypto.SHA256, 0
	if key, ok := signer.(*ecdsa.PrivateKey); ok {
		size = (key.Curve.Params().BitSize + 7) / 8
		hash = map[int]crypto.Hash{32: crypto.SHA256, 48: crypto.SHA384, 66: crypto.SHA512}[size]
		digest := hash.New()
		digest.Write([]byte(input))
		r, s, err := ecdsa.Sign(rand.Reader, key, digest.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		return input + "." + encode(append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...))
	}
	sum := sha256.Sum256([]byte(input))
	signature, err := signer.Sign(rand.Reader, sum[:], hash)
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + encode(signature)
}

func keyID(t testing.TB, key crypto.PublicKey) string {
	t.Helper()
	getter, err := kube.StaticPublicKeysGetter([]any{key})
	if err != nil {
		t.Fatal(err)
	}
	return getter.GetPublicKeys(context.Background(), "")[0].KeyID
}

// FuzzTokens holds that tokens are accepted and refused as kube-apiserver does, which
// leaves taking them apart to a JOSE library. The header and the claims are what the
// fuzzer makes of them; KID and NOW stand for the key and the time. Damage is done to
// the finished token.
func FuzzTokens(f *testing.F) {
	b := newBench(f)
	const account = `"sub":"system:serviceaccount:a:bot","kubernetes.io":{"namespace":"a","serviceaccount":{"name":"bot","uid":"u"}`
	for _, claims := range []string{
		`{"iss":"https://issuer","aud":["https://issuer"],"exp":NOW999,` + account + `}}`, `{"iss":"https://issuer","aud":"https://issuer","exp":NOW999,"jti":"i",` + account + `,"pod":{"name":"p","uid":"v"},"node":{"name":"n","uid":"x"}}}`,
		`{"iss":"https://issuer","aud":["x","https://issuer"],"exp":NOW999,"nbf":1,"iat":2,` + account + `,"secret":{"name":"s","uid":"w"}}}`, `{"iss":"https://issuer",` + account + `}}`,
		`{"iss":"https://issuer","aud":["https://issuer"],"exp":NOW999.5,` + account + `,"node":{"name":"n","uid":"x"},"warnafter":1}}`, `{"iss":"https://issuer","aud":[],"exp":1,` + account + `}}`,
		`{"iss":"https://issuer","aud":["https://issuer"],"exp":"NOW999",` + account + `}}`, `{"iss":"https://issuer","iss":"x","exp":NOW999,` + account + `}}`, `{"ISS":"https://issuer","exp":NOW999,` + account + `}}`,
		`{"iss":"https://issuer","aud":null,"exp":1e10,"nbf":NOW999,` + account + `}}`, `{"iss":"https://issuer","aud":["https://issuer"],"exp":NOW999,"iat":NOW999,` + account + `,"pod":{"name":"q","uid":"v"}}}`,
		`{"iss":"https://issuer","aud":["https://issuer"],"exp":NOW999,"kubernetes.io":{"namespace":"a","serviceaccount":{"name":"leaving","uid":"u"},"pod":null}}`, `{"iss":"x"}`, `null`, `[]`, `{`,
		`{"iss":"https://issuer","aud":["https://issuer"],"exp":null,` + account + `,"pod":{"name":"leaving","uid":"u"}}}`, `{"iss":"https://issuer","aud":["https://issuer"],"exp":NOW999,"kubernetes.io":{"namespace":"","serviceaccount":{"name":"","uid":""}}}`,
	} {
		for i := range b.signers {
			f.Add(uint8(i), `{"alg":"ALG","kid":"KID"}`, claims, uint16(0), byte(0))
		}
		f.Add(uint8(0), `{"alg":"ALG"}`, claims, uint16(9), byte('.'))
	}
	for _, header := range []string{
		`{"alg":"none"}`, `{"alg":"HS256","kid":"KID"}`, `{"alg":"ES256"}`, `{"alg":"RS512"}`, `{"alg":"PS256","kid":"KID"}`, `{"ALG":"RS256"}`, `{"alg":"ALG","crit":["x"],"x":1}`, `{"alg":"ALG","b64":false,"crit":["b64"]}`, `{}`, `[]`, `{"alg":"ALG","alg":"none"}`,
		`{"alg":"ALG","kid":7}`, `{"alg":"ALG","jwk":{}}`, `{"alg":"ALG","typ":"JWT","cty":"JWT","zip":"DEF"}`, `{"alg":"ALG"} `, `{"alg":"ALG","x5c":[]}`, `{"alg":"ALG","nonce":"x"}`, ` {"alg":null}`,
	} {
		f.Add(uint8(0), header, `{"iss":"https://issuer","aud":["https://issuer"],"exp":NOW999,`+account+`}}`, uint16(0), byte(0))
	}
	now := fmt.Sprint(time.Now().Unix() / 1000)
	f.Fuzz(func(t *testing.T, by uint8, header, claims string, at uint16, damage byte) {
		signer := b.signers[int(by)%len(b.signers)]
		algorithm := []string{"RS256", "ES256", "ES384", "ES512", "ES256"}[int(by)%len(b.signers)]
		header = strings.NewReplacer("KID", keyID(t, signer.Public()), "ALG", algorithm).Replace(header)
		token := []byte(signed(t, signer, header, strings.ReplaceAll(claims, "NOW", now)))
		if damage != 0 {
			token[int(at)%len(token)] = damage
		}
		if b.sameVerdict(t, string(token)) && int(by)%len(b.signers) == len(b.signers)-1 {
			t.Fatalf("a token of a stranger is accepted: %s", spelled(string(token)))
		}
	})
}

// TestIssuedTokensAreReadByALibrary holds that others verify tokens by the published
// keys, and read what they say.
func TestIssuedTokensAreReadByALibrary(t *testing.T) {
	t.Parallel()
	algorithms := []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}
	b := newBench(t)
	for i, algorithm := range algorithms {
		keys, err := controlplane.TestKeys()
		if err != nil {
			t.Fatal(err)
		}
		keys.Accounts = serviceaccount.Keys{Signer: b.signers[i]}
		plane, err := controlplane.New(controlplane.Options{Authentication: controlplane.Authentication{Keys: keys, Issuers: []string{issuer}}})
		if err != nil {
			t.Fatal(err)
		}
		var request authenticationv1.TokenRequest
		send(t, plane, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", `{"spec":{"expirationSeconds":600}}`, &request)
		var published jose.JSONWebKeySet
		send(t, plane, http.MethodGet, "/openid/v1/jwks", "", &published)

		token, err := jose.ParseSignedCompact(request.Status.Token, algorithms)
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		head := token.Signatures[0].Header
		known := published.Key(head.KeyID)
		if head.Algorithm != string(algorithm) || len(known) != 1 || known[0].Algorithm != string(algorithm) {
			t.Fatalf("%s: the header is %+v, the keys of that name are %+v", algorithm, head, known)
		}
		content, err := token.Verify(known[0])
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		var claims struct {
			Issuer   string   `json:"iss"`
			Subject  string   `json:"sub"`
			Audience []string `json:"aud"`
			Issued   int64    `json:"iat"`
			Expires  int64    `json:"exp"`
		}
		if err := json.Unmarshal(content, &claims); err != nil {
			t.Fatal(err)
		}
		if claims.Issuer != issuer || claims.Subject != "system:serviceaccount:default:default" || !slices.Equal(claims.Audience, []string{issuer}) || claims.Expires-claims.Issued != 600 {
			t.Errorf("%s: the claims are %s", algorithm, content)
		}
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// send asks a plane as its administrator.
func send(t *testing.T, plane *controlplane.Plane, method, path, body string, into any) {
	t.Helper()
	client, err := rest.HTTPClientFor(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, plane.RESTConfig().Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s %s, %v", method, path, response.Status, content, err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
