// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/delegated"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

const noteDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, plural: notes}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// noteServer is a custom API server that asks a cluster who its users are and what they
// may do.
func noteServer(t *testing.T, cluster *controlplane.Plane, definition string) http.Handler {
	t.Helper()
	d, err := delegated.New(delegated.Options{Config: cluster.RESTConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := storage.NewMemory(storage.MemoryOptions{})
	server, err := apiserver.New(apiserver.Options{Store: store, Authenticator: d, Authorizer: d.Authorizer(), Checks: d.Checks()})
	if err != nil {
		t.Fatal(err)
	}
	notes, err := custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition)}.Resource()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
	return server.Handler()
}

func TestCustomServerDelegatesToItsCluster(t *testing.T) {
	t.Parallel()
	proxies, proxyAPI := newPlane(t)
	proxy := certified(t, proxies, proxyAPI, pkix.Name{CommonName: "front"})
	proxyAPI.must("DELETE", "/apis/certificates.k8s.io/v1/certificatesigningrequests/mine", "")
	stranger := certified(t, proxies, proxyAPI, pkix.Name{CommonName: "other"})
	ca := proxyAPI.must("GET", configMaps+"/kube-root-ca.crt", "")
	text, _, _ := unstructured.NestedString(ca.Object, "data", "ca.crt")
	roots, err := cert.ParseCertsPEM([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	plane, api := listening(t, controlplane.Options{ManualControllers: true, Authentication: controlplane.Authentication{
		Keys: keys, FrontProxy: &auth.FrontProxy{Certificates: auth.NewCertificates(roots...), Names: []string{"front"}},
	}})
	jane := certified(t, plane, api, pkix.Name{CommonName: "jane"})
	api.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role,
metadata: {name: notes}, rules: [{apiGroups: [example.com], resources: [notes], verbs: [get, list]}]}`)
	api.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
metadata: {name: notes}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: notes},
subjects: [{kind: User, name: jane}, {kind: Group, name: readers}, {kind: ServiceAccount, name: reader, namespace: default}]}`)
	api.must("POST", "/api/v1/namespaces/default/serviceaccounts", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader}}`)
	request := api.must("POST", "/api/v1/namespaces/default/serviceaccounts/reader/token", `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}`)
	token, _, _ := unstructured.NestedString(request.Object, "status", "token")

	server := noteServer(t, plane, noteDefinition)
	const notes = "/apis/example.com/v1/namespaces/default/notes"
	for name, c := range map[string]struct {
		cert   *x509.Certificate
		header http.Header
		path   string
		code   int
		want   string
	}{
		"a user of the front proxy":                    {cert: proxy, header: http.Header{"X-Remote-User": {"jane"}}, code: 200},
		"a group of the front proxy":                   {cert: proxy, header: http.Header{"X-Remote-User": {"ann"}, "X-Remote-Group": {"readers"}}, code: 200},
		"another user of the front proxy":              {cert: proxy, header: http.Header{"X-Remote-User": {"ann"}}, code: 403, want: `User \"ann\" cannot list resource \"notes\" in API group \"example.com\" in the namespace \"default\"`},
		"headers with another certificate":             {cert: stranger, header: http.Header{"X-Remote-User": {"jane"}}, code: 401},
		"headers without a certificate":                {header: http.Header{"X-Remote-User": {"jane"}}, code: 403, want: "system:anonymous"},
		"a certificate of the cluster":                 {cert: jane, code: 200},
		"a user's certificate with headers of a proxy": {cert: jane, header: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, code: 200},
		"the token of a ServiceAccount":                {header: http.Header{"Authorization": {"Bearer " + token}}, code: 200},
		"a token in another namespace":                 {header: http.Header{"Authorization": {"Bearer " + token}}, path: "/apis/example.com/v1/namespaces/other/notes", code: 403},
		"a wrong token":                                {header: http.Header{"Authorization": {"Bearer wrong"}}, code: 401},
		"health without credentials":                   {path: "/readyz", code: 200},
		"discovery without credentials":                {path: "/apis", code: 403},
	} {
		path := c.path
		if path == "" {
			path = notes
		}
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for name, values := range c.header {
			r.Header[name] = values
		}
		r.TLS = &tls.ConnectionState{}
		if c.cert != nil {
			r.TLS.PeerCertificates = []*x509.Certificate{c.cert}
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, c.code, c.want)
		}
	}
}
