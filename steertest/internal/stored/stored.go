// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored reads what becomes of the objects of a control plane from its store: what
// was created and deleted, and what is there at the end.
package stored

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/storage"
)

// Reader is for one goroutine at a time.
type Reader struct {
	store   storage.Store
	direct  client.Client
	config  *rest.Config
	began   storage.Revision
	changes storage.Cursor
}

// New returns a reader of what happens from now on. The client and the configuration are
// those of an administrator; the latter has a transport without sockets.
func New(store storage.Store, direct client.Client, config *rest.Config) (*Reader, error) {
	r := &Reader{store: store, direct: direct, config: config, began: store.Latest().Revision()}
	var err error
	r.changes, err = store.Watch(storage.Range{}, r.began)
	return r, err
}

// Close releases the place in the history.
func (r *Reader) Close() { r.changes.Close() }

// preferred returns the resources that the server prefers, by the buckets of their objects.
func (r *Reader) preferred(ctx context.Context) (map[string]mapping.Resource, error) {
	all, err := r.direct.Mapper().All(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]mapping.Resource{}
	for _, resource := range all { // versions come in their order
		bucket := resource.GVR.Resource
		if resource.GVR.Group != "" {
			bucket = resource.GVR.Group + "/" + bucket
		}
		if _, known := out[bucket]; !known && resource.Can("get") {
			out[bucket] = resource
		}
	}
	return out, nil
}

// Changes returns the creations and deletions since the last call, or since [New], in their order.
func (r *Reader) Changes(ctx context.Context) ([]driven.Change, error) {
	var out []driven.Change
	var resources map[string]mapping.Resource
	for {
		batch, err := r.changes.Poll()
		if err != nil || len(batch.Events) == 0 {
			return out, err
		}
		for _, event := range batch.Events {
			if event.Previous != nil && !event.Deleted {
				continue
			}
			record := event.Record
			change := driven.Change{Key: record.Key.String(), Created: uint64(record.Created)}
			if event.Deleted {
				change.Deleted = uint64(record.Modified)
				if resources == nil {
					if resources, err = r.preferred(ctx); err != nil {
						return nil, err
					}
				}
				resource, served := resources[record.Key.Bucket]
				if !served {
					continue
				}
				if change.Object, err = r.deleted(ctx, resource, record); err != nil {
					return nil, fmt.Errorf("read %s as it was: %w", record.Key, err)
				}
			}
			out = append(out, change)
		}
	}
}

// deleted returns an object as it was before its deletion.
func (r *Reader) deleted(ctx context.Context, resource mapping.Resource, record *storage.Record) (*unstructured.Unstructured, error) {
	at := keyOf(record)
	query := url.Values{
		"fieldSelector": {"metadata.name=" + at.Name}, "resourceVersionMatch": {"Exact"},
		"resourceVersion": {fmt.Sprint(record.Modified - 1)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.config.Host+resource.Path(at.Namespace, "", "")+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := r.config.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var list unstructured.UnstructuredList
	body, err := io.ReadAll(answer.Body)
	if err == nil {
		err = list.UnmarshalJSON(body)
	}
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d objects at revision %d", len(list.Items), record.Modified-1)
	}
	return &list.Items[0], nil
}

// Objects returns what was created or changed since [New] and is there, by key.
func (r *Reader) Objects(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	resources, err := r.preferred(ctx)
	if err != nil {
		return nil, err
	}
	view := r.store.Latest()
	out := map[string]*unstructured.Unstructured{}
	for bucket := range view.Buckets() {
		resource, served := resources[bucket]
		if !served || r.store.LastModified(bucket) <= r.began {
			continue
		}
		for record := range view.Ascend(bucket, "", "") {
			if record.Modified <= r.began {
				continue
			}
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(resource.GVK)
			if err := r.direct.Get(ctx, keyOf(record), obj); err != nil {
				return nil, fmt.Errorf("read %s: %w", record.Key, err)
			}
			out[record.Key.String()] = obj
		}
	}
	return out, nil
}

func keyOf(record *storage.Record) client.ObjectKey {
	if namespace, name, ok := strings.Cut(record.Key.Name, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	return client.ObjectKey{Name: record.Key.Name}
}
