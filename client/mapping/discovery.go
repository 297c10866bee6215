// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client/wire"
)

const (
	// acceptAggregated prefers the whole catalogue in one answer; a server
	// without it sends the plain document of the same path.
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," + wire.JSON
	aggregatedMark = "as=APIGroupDiscoveryList"
)

// discovery asks a server what it serves. It remembers the aggregated answers
// with their ETags, so that asking again costs next to nothing.
type discovery struct {
	conn Doer

	mu    sync.Mutex
	roots map[string]rootAnswer
}

type rootAnswer struct {
	etag   string
	groups []apidiscovery.APIGroupDiscovery
}

func (d *discovery) fetch(ctx context.Context) (*catalogue, error) {
	c := newCatalogue()
	for _, root := range []string{"/api", "/apis"} {
		if err := d.root(ctx, c, root); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (d *discovery) root(ctx context.Context, c *catalogue, root string) error {
	d.mu.Lock()
	before := d.roots[root]
	d.mu.Unlock()
	resp, err := d.get(ctx, root, acceptAggregated, before.etag)
	if apierrors.IsNotFound(err) {
		return nil // a server may have one root only
	}
	if err != nil {
		return fmt.Errorf("discover %s: %w", root, err)
	}
	if resp.Status == http.StatusNotModified {
		addAggregated(c, before.groups)
		return nil
	}
	if !strings.Contains(strings.ReplaceAll(resp.ContentType, " ", ""), aggregatedMark) {
		return d.legacy(ctx, c, root, resp.Body)
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(resp.Body, &list); err != nil {
		return fmt.Errorf("discover %s: %w", root, err)
	}
	d.mu.Lock()
	if d.roots == nil {
		d.roots = map[string]rootAnswer{}
	}
	d.roots[root] = rootAnswer{resp.ETag, list.Items}
	d.mu.Unlock()
	addAggregated(c, list.Items)
	return nil
}

func addAggregated(c *catalogue, groups []apidiscovery.APIGroupDiscovery) {
	for _, group := range groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			for _, res := range version.Resources {
				if res.ResponseKind == nil || res.ResponseKind.Kind == "" {
					continue // only subresources are served
				}
				r := Resource{
					GVK:        gv.WithKind(res.ResponseKind.Kind),
					GVR:        gv.WithResource(res.Resource),
					Singular:   res.SingularResource,
					Namespaced: res.Scope == apidiscovery.ScopeNamespace,
					Verbs:      res.Verbs, ShortNames: res.ShortNames, Categories: res.Categories,
				}
				for _, sub := range res.Subresources {
					r.addSubresource(sub.Subresource, sub.Verbs)
				}
				c.add(r)
			}
		}
	}
}

func (r *Resource) addSubresource(name string, verbs []string) {
	if r.Subresources == nil {
		r.Subresources = map[string][]string{}
	}
	r.Subresources[name] = verbs
}

// legacy reads the plain documents: body is that of the root. A group whose
// server is away is left out: its kinds are then reported as missing.
func (d *discovery) legacy(ctx context.Context, c *catalogue, root string, body []byte) error {
	var versions []string // "v1", "apps/v1"; preferred first within a group
	if root == "/api" {
		var list metav1.APIVersions
		if err := json.Unmarshal(body, &list); err != nil {
			return fmt.Errorf("discover %s: %w", root, err)
		}
		versions = list.Versions
	} else {
		var list metav1.APIGroupList
		if err := json.Unmarshal(body, &list); err != nil {
			return fmt.Errorf("discover %s: %w", root, err)
		}
		for _, group := range list.Groups {
			if v := group.PreferredVersion.GroupVersion; v != "" {
				versions = append(versions, v)
			}
			for _, v := range group.Versions {
				if v.GroupVersion != group.PreferredVersion.GroupVersion {
					versions = append(versions, v.GroupVersion)
				}
			}
		}
	}
	for _, version := range versions {
		resp, err := d.get(ctx, root+"/"+version, wire.JSON, "")
		if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("discover %s: %w", version, err)
		}
		if err := addLegacy(c, version, resp.Body); err != nil {
			return fmt.Errorf("discover %s: %w", version, err)
		}
	}
	return nil
}

func addLegacy(c *catalogue, version string, body []byte) error {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	subs := map[string]map[string][]string{}
	for _, res := range list.APIResources {
		if name, sub, ok := strings.Cut(res.Name, "/"); ok {
			if subs[name] == nil {
				subs[name] = map[string][]string{}
			}
			subs[name][sub] = res.Verbs
		}
	}
	for _, res := range list.APIResources {
		if strings.Contains(res.Name, "/") {
			continue
		}
		c.add(Resource{
			GVK: gv.WithKind(res.Kind), GVR: gv.WithResource(res.Name), Singular: res.SingularName,
			Namespaced: res.Namespaced, Verbs: res.Verbs, ShortNames: res.ShortNames,
			Categories: res.Categories, Subresources: subs[res.Name],
		})
	}
	return nil
}

func (d *discovery) get(ctx context.Context, path, accept, etag string) (*wire.Response, error) {
	resp, err := d.conn.Do(ctx, wire.Request{
		Verb: "get", Method: http.MethodGet, Path: path, Accept: accept, IfNoneMatch: etag,
	})
	if err == nil && resp.Status == http.StatusNotModified && etag == "" {
		return nil, errors.New("the server answered 304 to an unconditional request")
	}
	return resp, err
}
