// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// automanaged is the label that says since when a service is looked after: always,
// or at every start.
const (
	automanaged = "kube-aggregator.kubernetes.io/automanaged"
	always      = "true"
	atStart     = "onstart"
)

// Boot compares a view with the services of what a server has built in. It returns
// the creations of those that are not there, and the requests by which others get
// the priorities that they should have. uid returns a new one.
func Boot(view storage.View, builtin []*resource.Resource, uid func() types.UID, now time.Time) (create []storage.Write, restore []step.Request) {
	for _, gv := range versions(builtin) {
		if gv.Group == group {
			continue // no controller would maintain that one
		}
		key := storage.Key{Bucket: Bucket, Name: name(gv)}
		rec := view.Get(key)
		if rec == nil {
			create = append(create, creation(gv, uid(), now).Write())
			continue
		}
		if bytes.Contains(rec.Value, []byte(stored(gv))) {
			continue // it is unchanged
		}
		if s := decode(rec); s != nil && s.Labels[automanaged] != "" && !equality.Semantic.DeepEqual(s.Spec, spec(gv)) {
			s.Spec = spec(gv)
			restore = append(restore, put(key, "", s))
		}
	}
	return create, restore
}

// versions returns the versions of groups in which resources are served, in order.
func versions(resources []*resource.Resource) []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, r := range resources {
		for i := range r.Versions {
			if v := &r.Versions[i]; !v.NotServed {
				out = append(out, schema.GroupVersion{Group: r.Group, Version: v.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(out)
}

// name of the service of a version.
func name(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// spec of the service of a version that this server has itself.
func spec(gv schema.GroupVersion) v1.APIServiceSpec {
	return v1.APIServiceSpec{
		Group: gv.Group, Version: gv.Version,
		GroupPriorityMinimum: discovery.GroupPriority(gv.Group), VersionPriority: discovery.VersionPriority(gv),
	}
}

// stored is the spec of a service in the form in which it is stored.
func stored(gv schema.GroupVersion) string {
	s, groups := spec(gv), ""
	if s.Group != "" {
		groups = `"group":"` + s.Group + `",`
	}
	return `"spec":{` + groups + `"version":"` + s.Version + `","groupPriorityMinimum":` + strconv.Itoa(int(s.GroupPriorityMinimum)) +
		`,"versionPriority":` + strconv.Itoa(int(s.VersionPriority)) + `}`
}

// creation of the service of a version that is built in.
func creation(gv schema.GroupVersion, uid types.UID, now time.Time) step.Creation {
	groups := ""
	if gv.Group != "" {
		groups = `"f:group":{},`
	}
	return step.Creation{
		Key: storage.Key{Bucket: Bucket, Name: name(gv)}, APIVersion: apiVersion, Kind: "APIService", Name: name(gv), UID: uid, At: now,
		Labels: `{"` + automanaged + `":"` + atStart + `"}`, Manager: "kube-apiserver",
		Fields: `{"f:metadata":{"f:labels":{".":{},"f:` + automanaged + `":{}}},"f:spec":{` + groups +
			`"f:groupPriorityMinimum":{},"f:version":{},"f:versionPriority":{}}}`,
		Content: stored(gv) + `,"status":{"conditions":[{"type":"Available","status":"True","lastTransitionTime":"` + now.UTC().Format(time.RFC3339) +
			`","reason":"` + localReason + `","message":"` + localMessage + `"}]}`,
	}
}

// put returns the request that replaces a service, or a part of it.
func put(key storage.Key, subresource string, s service) step.Request {
	s.APIVersion, s.Kind, s.ManagedFields = apiVersion, "APIService", nil
	body, err := json.Marshal(s)
	if err != nil {
		panic("apiservice: " + err.Error()) // there is nothing in it that cannot be encoded
	}
	return step.Put(step.APIServer, path(key.Name)+subresource, body, step.Subject{Key: key, Detail: subresource})
}

// path of a service.
func path(name string) string { return "/apis/" + apiVersion + "/" + plural + "/" + name }
