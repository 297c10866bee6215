// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

// The first objects are written past the server; the same requests show what it
// would have written.
func TestBootObjectsAreAsTheServerStoresThem(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	plane, err := controlplane.New(controlplane.Options{Store: store, ManualControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop(t.Context())
	config := plane.RESTConfig()
	config.Transport = agent{config.Transport}
	api := apiOf(t, config)
	api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
	first := api.must("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", "")
	api.must("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: other}, value: 1000, description: "+first.Object["description"].(string)+"}")
	view, err := store.View(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for bucket, names := range map[string][2]string{
		"namespaces":                        {"kube-public", "other"},
		"serviceaccounts":                   {"kube-public/default", "other/default"},
		"configmaps":                        {"kube-public/kube-root-ca.crt", "other/kube-root-ca.crt"},
		"scheduling.k8s.io/priorityclasses": {"system-node-critical", "other"},
	} {
		var forms [2]string
		for i, name := range names {
			rec := view.Get(storage.Key{Bucket: bucket, Name: name})
			if rec == nil {
				t.Fatalf("no %s %s", bucket, name)
			}
			forms[i] = general(string(rec.Value))
		}
		equal(t, bucket, strings.Split(forms[1], ","), strings.Split(forms[0], ","))
	}
}

// general returns a stored object without what tells it from others of its kind.
func general(stored string) string {
	for pattern, text := range map[string]string{
		`"(uid|resourceVersion|creationTimestamp|time)":"[^"]*"`:                                    `"$1":""`,
		`"(name|namespace|kubernetes.io/metadata.name)":"(other|kube-public|system-node-critical)"`: `"$1":""`,
		`"value":\d+`: `"value":0`,
	} {
		stored = regexp.MustCompile(pattern).ReplaceAllString(stored, text)
	}
	return stored
}

// agent makes requests look like the server's own.
type agent struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "kube-apiserver")
	return a.RoundTripper.RoundTrip(r)
}

func TestServiceKubernetesLeadsToTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var uids []string
	for _, address := range []string{"127.0.0.1:0", "127.0.0.1:0"} {
		plane, err := controlplane.New(controlplane.Options{DataDir: dir, Listen: address, ManualControllers: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := plane.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(plane.URL())
		if err != nil {
			t.Fatal(err)
		}
		api := apiOf(t, plane.RESTConfig())
		service := api.must("GET", "/api/v1/namespaces/default/services/kubernetes", "")
		endpoints := api.must("GET", "/api/v1/namespaces/default/endpoints/kubernetes", "")
		slice := api.must("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "")
		uids = append(uids, string(service.GetUID()))
		port := func(o map[string]any, name string, path ...any) {
			t.Helper()
			var value any = o
			for _, step := range path {
				switch step := step.(type) {
				case string:
					value = value.(map[string]any)[step]
				case int:
					value = value.([]any)[step]
				}
			}
			equal(t, name, at.Port(), fmt.Sprint(value))
		}
		port(service.Object, "target port", "spec", "ports", 0, "targetPort")
		port(endpoints.Object, "port of the endpoints", "subsets", 0, "ports", 0, "port")
		port(slice.Object, "port of the slice", "ports", 0, "port")
		// Its address is not given to another.
		code, _ := api.do("POST", "/api/v1/namespaces/default/services", `{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}`)
		equal(t, "a second Service with the address", http.StatusUnprocessableEntity, code)
		if err := plane.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "uid after another start", uids[0], uids[1])
}
