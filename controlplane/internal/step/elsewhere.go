// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/storage"
)

// Elsewhere is what other servers serve, behind APIServices. It is shared and must not be
// changed.
type Elsewhere struct {
	// Resources of the versions whose servers say what they serve, each in the version of the
	// highest priority that has it.
	Resources []Resource
	// Kinds are the indices of Resources by all versions of a kind.
	Kinds map[schema.GroupVersionKind]int
	// Stale are the versions whose servers do not say at present what they serve, in order.
	// What they have is unknown: nothing may be concluded from its absence.
	Stale []schema.GroupVersion
}

// Empty reports whether there are no other servers.
func (e *Elsewhere) Empty() bool { return len(e.Resources) == 0 && len(e.Stale) == 0 }

// Kind returns the resource that serves a kind in a group and version.
func (e *Elsewhere) Kind(apiVersion, kind string) (Resource, bool) {
	i, ok := e.Kinds[schema.FromAPIVersionAndKind(apiVersion, kind)]
	if !ok {
		return Resource{}, false
	}
	return e.Resources[i], true
}

// Bucket returns the resource with a bucket.
func (e *Elsewhere) Bucket(name string) (Resource, bool) {
	i := slices.IndexFunc(e.Resources, func(r Resource) bool { return r.Bucket == name })
	if i < 0 {
		return Resource{}, false
	}
	return e.Resources[i], true
}

// elsewherePrefix begins the buckets of resources of other servers.
const elsewherePrefix = "elsewhere:"

// ElsewhereBucket returns the bucket of a resource that another server serves. No store has
// it: it keeps the keys of such objects apart from those of stored ones.
func ElsewhereBucket(group, plural string) string { return elsewherePrefix + group + "/" + plural }

// IsElsewhere reports whether a key is that of an object of another server.
func IsElsewhere(key storage.Key) bool { return strings.HasPrefix(key.Bucket, elsewherePrefix) }

// IsPlainName reports whether a name that another server or a reference says can be a part of
// a path, and nothing else.
func IsPlainName(name string) bool {
	return name != "" && name != "." && name != ".." && url.PathEscape(name) == name
}

// Can reports whether a resource of another server has verbs.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// Fetcher carries one request out and returns the body of the answer, which the caller
// closes. An answer of 300 and above is an error that has its Status; see
// [k8s.io/apimachinery/pkg/api/errors]. It is safe for concurrent use, and returns when ctx
// ends, as reads of the body do.
type Fetcher func(ctx context.Context, r Request) (io.ReadCloser, error)

// ClientError returns the error of a [Fetcher] as client-go has it, without its request: an
// answer without a Status becomes the one that client-go makes of it, which names the
// resource and the object that are given.
func ClientError(err error, verb string, of schema.GroupResource, name string) error {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return err
	}
	status := refused.Status()
	if status.Reason == "" {
		return apierrors.NewGenericServerResponse(int(status.Code), verb, of, name, strings.TrimSpace(status.Message), 0, true)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// Bounds of lists of other servers.
const (
	pageObjects   = 500
	mostPageBytes = 64 << 20
)

// List calls a function for the metadata of all objects of a collection, page by page, until
// it returns an error. It returns the resourceVersion of the last page.
func (f Fetcher) List(ctx context.Context, user, collection string, each func(*metav1.PartialObjectMetadata) error) (revision string, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageObjects)}}
	for {
		page, err := f.page(ctx, Request{User: user, Method: http.MethodGet, Path: collection, Query: query, Accept: metadataList})
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := each(&page.Items[i]); err != nil {
				return "", err
			}
		}
		if page.Continue == "" {
			return page.ResourceVersion, nil
		}
		query.Set("continue", page.Continue)
	}
}

func (f Fetcher) page(ctx context.Context, r Request) (*metav1.PartialObjectMetadataList, error) {
	answer, err := f(ctx, r)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	page := &metav1.PartialObjectMetadataList{}
	if err := json.NewDecoder(io.LimitReader(answer, mostPageBytes)).Decode(page); err != nil {
		return nil, fmt.Errorf("GET %s: %w", r.Path, err)
	}
	return page, nil
}

// Media types of answers that have nothing but metadata. Servers that do not know them answer
// with whole objects, of which the metadata is read.
const (
	MetadataObject = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataList   = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
