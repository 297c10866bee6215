// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
)

func TestServiceKubernetesIsRestored(t *testing.T) {
	t.Parallel()
	_, api := listening(t, controlplane.Options{ManualControllers: true})
	const (
		service   = "/api/v1/namespaces/default/services/kubernetes"
		endpoints = "/api/v1/namespaces/default/endpoints/kubernetes"
		slice     = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	)
	for _, path := range []string{service, endpoints, slice} {
		before := api.must("GET", path, "")
		api.must("DELETE", path, "")
		after := api.must("GET", path, "")
		equal(t, path+": another object", true, before.GetUID() != after.GetUID())
		for _, content := range []string{"spec", "subsets", "endpoints", "ports"} {
			equal(t, path+": "+content, before.Object[content], after.Object[content])
		}
	}
	before := api.must("GET", slice, "")
	api.must("PUT", slice, strings.NewReplacer("127.0.0.1", "203.0.113.9").Replace(text(t, before)))
	after := api.must("GET", slice, "")
	equal(t, "the slice's endpoints", before.Object["endpoints"], after.Object["endpoints"])
	equal(t, "the slice is the same object", before.GetUID(), after.GetUID())
	equal(t, "its generation: changed, and changed back", before.GetGeneration()+2, after.GetGeneration())

	labelled := api.must("GET", service, "")
	labelled.SetLabels(map[string]string{"mine": "yes"})
	api.must("PUT", service, text(t, labelled))
	equal(t, "labels of the Service", map[string]string{"mine": "yes"}, api.must("GET", service, "").GetLabels())
}

func TestServiceKubernetesLeadsToTheAdvertisedAddress(t *testing.T) {
	t.Parallel()
	_, api := listening(t, controlplane.Options{ManualControllers: true, Advertise: netip.MustParseAddrPort("192.0.2.7:7443")})
	endpoints := api.must("GET", "/api/v1/namespaces/default/endpoints/kubernetes", "")
	slice := api.must("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "")
	for name, o := range map[string]*unstructured.Unstructured{"Endpoints": endpoints, "slice": slice} {
		if got := text(t, o); !strings.Contains(got, `"192.0.2.7"`) || !strings.Contains(got, `7443`) || strings.Contains(got, "127.0.0.1") {
			t.Errorf("the %s is %s", name, got)
		}
	}
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	data, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAuthenticationConfigMapHoldsTheAuthorities(t *testing.T) {
	t.Parallel()
	keys, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	_, api := listening(t, controlplane.Options{Authentication: controlplane.Authentication{
		Keys: keys, FrontProxy: &auth.FrontProxy{Certificates: auth.NewCertificates(proxies.CA), Names: []string{"front"}},
	}})
	config := api.must("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
	data, _, err := unstructured.NestedStringMap(config.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "data", map[string]string{
		"client-ca-file":                     string(keys.CertificatePEM()),
		"requestheader-client-ca-file":       string((&controlplane.Keys{CA: keys.FrontProxy.Certificate}).CertificatePEM()) + string(proxies.CertificatePEM()),
		"requestheader-allowed-names":        `["front","front-proxy-client"]`,
		"requestheader-username-headers":     `["X-Remote-User"]`,
		"requestheader-uid-headers":          `["X-Remote-Uid"]`,
		"requestheader-group-headers":        `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}, data)
	// The ConfigMap is what the server would have stored.
	config.SetName("other")
	config.SetResourceVersion("")
	config.SetManagedFields(nil)
	other := api.must("POST", "/api/v1/namespaces/kube-system/configmaps", text(t, config))
	first := api.must("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
	equal(t, "fields", other.GetManagedFields()[0].FieldsV1.String(), first.GetManagedFields()[0].FieldsV1.String())

	since := api.must("GET", "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking", "")
	day, _, _ := unstructured.NestedString(since.Object, "data", "since")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		t.Error(err)
	}
}

func TestSecretTokenUseIsRecorded(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	const secret = "/api/v1/namespaces/default/secrets/token"
	api.must("POST", "/api/v1/namespaces/default/secrets", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}}`)
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	filled := api.must("GET", secret, "")
	encoded, _, _ := unstructured.NestedString(filled.Object, "data", "token")
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	review := func() {
		t.Helper()
		code, _ := api.do("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
			`{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: "`+string(token)+`"}}`)
		equal(t, "review", http.StatusCreated, code)
	}
	const label = "kubernetes.io/legacy-token-last-used"
	today := time.Now().UTC().Format(time.DateOnly)
	equal(t, "before its use", "", filled.GetLabels()[label])
	review()
	equal(t, "after its use, with the answer", "", api.must("GET", secret, "").GetLabels()[label])
	settle(t, plane) // it is written outside authentication
	used := api.must("GET", secret, "")
	if got := used.GetLabels()[label]; got < today {
		t.Errorf("after its use: %q, want %s", got, today)
	}
	review()
	settle(t, plane)
	if again := api.must("GET", secret, ""); time.Now().UTC().Format(time.DateOnly) == today {
		equal(t, "version after another use", used.GetResourceVersion(), again.GetResourceVersion())
	}
}
