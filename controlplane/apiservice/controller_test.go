// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// defined is a definition in the group example.com with versions that are served, or not if
// their name begins with "-".
func defined(versions ...string) map[string]any {
	var list []any
	for _, v := range versions {
		name, notServed := strings.CutPrefix(v, "-")
		list = append(list, map[string]any{"name": name, "served": !notServed})
	}
	return map[string]any{"spec": map[string]any{"group": "example.com", "versions": list}}
}

const (
	services  = "/apis/apiregistration.k8s.io/v1/apiservices"
	automatic = "labels=map[kube-aggregator.kubernetes.io/automanaged:true]"
	local     = "/status Available=True Local: Local APIServices are always available (03:04:05)"
)

func TestControllerMaintainsTheServicesOfDefinitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Services{}, nil)
	d := drive(w, apiservice.NewController())
	as, bs := storage.Key{Bucket: crd.Bucket, Name: "as.example.com"}, storage.Key{Bucket: crd.Bucket, Name: "bs.example.com"}
	create := func(version string) string {
		return "POST " + services + " " + version + ".example.com group=example.com version=" + version + " priorities=1000,100 " + automatic
	}
	put := func(version, rest string) string { return "PUT " + services + "/" + version + ".example.com" + rest }
	v1Key := storage.Key{Bucket: apiservice.Bucket, Name: "v1.example.com"}
	for _, tt := range []struct {
		what string
		key  storage.Key
		o    any
		want []string
	}{
		{"a definition", as, defined("v1", "-v2", "v3"), []string{create("v1"), create("v3")}},
		{"nothing", as, defined("v1", "-v2", "v3"), []string{put("v1", local), put("v3", local)}},
		{"nothing", as, defined("v1", "-v2", "v3"), nil},
		{"another definition of the group", bs, defined("v1", "v2"), []string{create("v2")}},
		{"its condition", bs, defined("v1", "v2"), []string{put("v2", local)}},
		{
			"a wrong priority", v1Key, automanaged("v1", "true", func(s *v1.APIService) { s.Spec.VersionPriority = 7 }),
			[]string{put("v1", " v1.example.com group=example.com version=v1 priorities=1000,100 "+automatic)},
		},
		{"its condition", bs, defined("v1", "v2"), []string{put("v1", local)}},
		{"a service that is being deleted", v1Key, automanaged("v1", "true", func(s *v1.APIService) { s.DeletionTimestamp = &metav1.Time{Time: d.now} }), nil},
		{"the end of a service", v1Key, nil, []string{create("v1")}},
		{"its condition", bs, defined("v1", "v2"), []string{put("v1", local)}},
		{"a version that is no longer served", as, defined("v1"), []string{`DELETE ` + services + `/v3.example.com {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":""}}`}},
		{"the end of a definition beside another", as, nil, nil},
		{
			"the end of the last definition", bs, nil,
			[]string{
				`DELETE ` + services + `/v1.example.com {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":""}}`,
				`DELETE ` + services + `/v2.example.com {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":""}}`,
			},
		},
		{"a service of a user", v1Key, automanaged("v1", "", nil), []string{put("v1", local)}},
		{"a service of a user that another server serves", v1Key, wings(), nil},
	} {
		d.put(tt.key, tt.o)
		same(t, "requests after "+tt.what, strings.Join(tt.want, "\n"), d.step())
	}
}

// automanaged is an APIService of this server, with a label that says since when it is
// maintained.
func automanaged(version, since string, change func(*v1.APIService)) *v1.APIService {
	return wings(func(s *v1.APIService) {
		s.Name, s.UID = version+".example.com", ""
		s.Spec = v1.APIServiceSpec{Group: "example.com", Version: version, GroupPriorityMinimum: 1000, VersionPriority: 100}
		if since != "" {
			s.Labels = map[string]string{"kube-aggregator.kubernetes.io/automanaged": since}
		}
		if change != nil {
			change(s)
		}
	})
}

func TestControllerRepeatsWhatHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Services{}, nil)
	d := drive(w, apiservice.NewController())
	d.put(storage.Key{Bucket: crd.Bucket, Name: "as.example.com"}, defined("v1"))
	requests := d.requests()
	same(t, "requests", 1, len(requests))
	same(t, "requests while one is under way", 0, len(d.requests()))
	d.controller.Done(requests[0], errors.New("no"))
	again := d.requests()
	same(t, "requests after a failure", 1, len(again))
	d.controller.Done(again[0], nil)
	same(t, "requests after a success", 0, len(d.requests()))
}

// TestBootMakesWhatIsMissing has a server with two groups, one of them in two versions.
func TestBootMakesWhatIsMissing(t *testing.T) {
	t.Parallel()
	resourceOf := func(group string, versions ...resource.Version) *resource.Resource {
		return &resource.Resource{Names: resource.Names{Group: group}, Versions: versions}
	}
	builtin := []*resource.Resource{
		resourceOf("example.com", resource.Version{Name: "v2"}, resource.Version{Name: "v1"}, resource.Version{Name: "v3", NotServed: true}),
		resourceOf("example.com", resource.Version{Name: "v1"}), resourceOf("", resource.Version{Name: "v1"}),
		resourceOf("apiregistration.k8s.io", resource.Version{Name: "v1"}),
	}
	now, n := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 0
	boot := func(s storage.Store) (created, restored []string) {
		writes, requests := apiservice.Boot(s.Latest(), builtin, func() types.UID { n++; return types.UID(fmt.Sprint("uid-", n)) }, now)
		for _, w := range writes {
			created = append(created, w.Key.Name)
			if _, err := s.Commit(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range requests {
			restored = append(restored, rendered(t, r))
		}
		return created, restored
	}
	store := storage.NewMemory(storage.MemoryOptions{})
	key := func(name string) storage.Key { return storage.Key{Bucket: apiservice.Bucket, Name: name} }
	steptest.Put(t, store, key("v2.example.com"), automanaged("v2", "onstart", func(s *v1.APIService) { s.Spec.VersionPriority = 7 }))
	created, restored := boot(store)
	same(t, "services that are made", []string{"v1.", "v1.example.com"}, created)
	onstart := "labels=map[kube-aggregator.kubernetes.io/automanaged:onstart]"
	same(t, "services that are restored", []string{"PUT " + services + "/v2.example.com v2.example.com group=example.com version=v2 priorities=1000,100 " + onstart}, restored)
	const want = `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.","uid":"uid-1","resourceVersion":"2","creationTimestamp":"2026-01-02T03:04:05Z",` +
		`"labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"},"managedFields":[{"manager":"kube-apiserver","operation":"Update",` +
		`"apiVersion":"apiregistration.k8s.io/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},` +
		`"f:kube-aggregator.kubernetes.io/automanaged":{}}},"f:spec":{"f:groupPriorityMinimum":{},"f:version":{},"f:versionPriority":{}}}}]},` +
		`"spec":{"version":"v1","groupPriorityMinimum":18000,"versionPriority":1},"status":{"conditions":[{"type":"Available","status":"True",` +
		`"lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Local","message":"Local APIServices are always available"}]}}`
	same(t, "a service that is made", want, string(store.Latest().Get(key("v1.")).Value))

	steptest.Put(t, store, key("v2.example.com"), automanaged("v2", "", func(s *v1.APIService) { s.Spec.VersionPriority = 7 })) // a user's own
	created, restored = boot(store)
	same(t, "what is made at the next start", 0, len(created)+len(restored))
}
