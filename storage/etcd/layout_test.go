// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	"github.com/steer-dev/steer/storage"
)

func TestKeysOfObjectsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	l := newLayout("/steer")
	for want, key := range map[string]storage.Key{
		"/steer/pods/default/web":               {Bucket: "pods", Name: "default/web"},
		"/steer/namespaces/default":             {Bucket: "namespaces", Name: "default"},
		"/steer/deployments/default/web":        {Bucket: "apps/deployments", Name: "default/web"},
		"/steer/services/specs/default/web":     {Bucket: "services", Name: "default/web"},
		"/steer/services/endpoints/default/web": {Bucket: "endpoints", Name: "default/web"},
		"/steer/minions/one":                    {Bucket: "nodes", Name: "one"},
		"/steer/controllers/default/web":        {Bucket: "replicationcontrollers", Name: "default/web"},
		"/steer/ingress/default/web":            {Bucket: "networking.k8s.io/ingresses", Name: "default/web"},
		"/steer/leases/default/web":             {Bucket: "coordination.k8s.io/leases", Name: "default/web"},
		"/steer/%leases/x":                      {Bucket: "leases", Name: "x"},
		"/steer/%services%2Fspecs/x":            {Bucket: "services/specs", Name: "x"},
		"/steer/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com": {Bucket: "apiextensions.k8s.io/customresourcedefinitions", Name: "widgets.example.com"},
		"/steer/gateway.networking.k8s.io/gateways/default/one":                     {Bucket: "gateway.networking.k8s.io/gateways", Name: "default/one"},
		"/steer/example.com/widgets/default/one":                                    {Bucket: "example.com/widgets", Name: "default/one"},
		"/steer/%a%2Fb/c":                                                           {Bucket: "a/b", Name: "c"},
		"/steer/%example.com/c":                                                     {Bucket: "example.com", Name: "c"},
		"/steer/%.steer%2Fowner/x":                                                  {Bucket: ".steer/owner", Name: "x"},
	} {
		if got := l.key(key); got != want {
			t.Errorf("%v is at %s, want %s", key, got, want)
		}
	}
}

func FuzzKeysOfObjectsAreDistinct(f *testing.F) {
	for _, bucket := range []string{"pods", "apps/deployments", "example.com/widgets", "a/b", "%a", ".steer", "apps", "example.com/a/b", "/", "a/", "services", "services/specs", "leases", "coordination.k8s.io/leases", "minions"} {
		f.Add(bucket, "default/web")
		f.Add(bucket, "/")
	}
	f.Fuzz(func(t *testing.T, bucket, name string) {
		if bucket == "" || name == "" {
			return
		}
		l, key := newLayout("x"), storage.Key{Bucket: bucket, Name: name}
		if got, ok := l.parse(l.key(key)); !ok || got != key {
			t.Errorf("%q is at %q, which is that of %q, %v", key, l.key(key), got, ok)
		}
	})
}
