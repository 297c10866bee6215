// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Bounds of lists and watches of other servers.
const (
	listTimeout = time.Minute
	// mostEventBytes bounds one event of a watch, of which the metadata alone is kept.
	mostEventBytes = 8 << 20
	// watchSeconds is how long a watch is asked to last.
	watchSeconds = 480
	// firstDelay and lastDelay are those before a list or watch that failed is repeated.
	firstDelay, lastDelay = 500 * time.Millisecond, 30 * time.Second
)

// mirror follows the metadata of the objects of one resource that another server serves: it
// lists them, and watches from there on. What it has seen stays when the server does not
// answer any more.
type mirror struct {
	resource step.Resource
	fetch    step.Fetcher
	// changed is told what changes.
	changed func(change)
	seen    map[storage.Key]types.UID
	stop    context.CancelFunc
}

// change is that of one object. A key without a name says that everything was listed again:
// objects may have come and gone unseen.
type change struct {
	key    storage.Key
	object *step.Object // nil: it has gone
	gone   types.UID    // of the object that there was before under this key, if there was one
}

// run follows the objects until ctx ends.
func (m *mirror) run(ctx context.Context) {
	delay, revision := firstDelay, ""
	for ctx.Err() == nil {
		var err error
		if revision == "" {
			revision, err = m.list(ctx)
		}
		if err == nil {
			started := time.Now()
			revision, err = m.watch(ctx, revision)
			if time.Since(started) > lastDelay {
				delay = firstDelay
			}
		}
		if err == nil {
			delay = firstDelay
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		if err != nil {
			delay = min(2*delay, lastDelay)
		}
	}
}

// list replaces what was seen, and returns the revision of the list.
func (m *mirror) list(ctx context.Context) (revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed := map[storage.Key]*step.Object{}
	revision, err = m.fetch.List(ctx, step.GarbageCollector, m.resource.Collection(""), func(of *metav1.PartialObjectMetadata) error {
		if key, obj := m.read(of); obj != nil {
			listed[key] = obj
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	for key := range m.seen {
		if listed[key] == nil {
			m.put(key, nil)
		}
	}
	for key, obj := range listed {
		m.put(key, obj)
	}
	m.changed(change{key: storage.Key{Bucket: m.resource.Bucket}})
	return revision, nil
}

// errWatch is the error of a watch that ends with one.
var errWatch = errors.New("the watch ended with an error")

// watch follows the changes after a revision, until the watch ends. It returns the revision
// to go on from; empty: everything has to be listed again.
func (m *mirror) watch(ctx context.Context, revision string) (string, error) {
	answer, err := m.fetch(ctx, step.Request{
		User: step.GarbageCollector, Method: http.MethodGet, Path: m.resource.Collection(""), Accept: step.MetadataObject, Query: url.Values{
			"watch": {"1"}, "resourceVersion": {revision}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(watchSeconds)},
		},
	})
	if err != nil {
		if apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) {
			return revision, err
		}
		return "", err
	}
	defer answer.Close()
	bounded := &io.LimitedReader{R: answer}
	events := json.NewDecoder(bounded)
	for {
		bounded.N = mostEventBytes
		var event struct {
			Type   string                       `json:"type"`
			Object metav1.PartialObjectMetadata `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) && bounded.N > 0 {
				return revision, nil
			}
			return "", err
		}
		if event.Type == "ERROR" {
			return "", errWatch
		}
		if event.Object.ResourceVersion != "" {
			revision = event.Object.ResourceVersion
		}
		key, obj := m.read(&event.Object)
		switch {
		case obj == nil, event.Type == "BOOKMARK":
		case event.Type == "DELETED":
			m.put(key, nil)
		default:
			m.put(key, obj)
		}
	}
}

// read returns the key and the metadata of an object, nil if it has no UID, a name that cannot
// be a part of a path, or a namespace where there is none.
func (m *mirror) read(from *metav1.PartialObjectMetadata) (storage.Key, *step.Object) {
	if from.UID == "" || !step.IsPlainName(from.Name) || m.resource.Namespaced != step.IsPlainName(from.Namespace) {
		return storage.Key{}, nil
	}
	return m.resource.Key(from.Namespace, from.Name), &step.Object{
		UID: from.UID, Owners: from.OwnerReferences, Finalizers: from.Finalizers, Deleting: from.DeletionTimestamp != nil, Revision: from.ResourceVersion,
	}
}

func (m *mirror) put(key storage.Key, obj *step.Object) {
	c := change{key: key, object: obj}
	if before := m.seen[key]; obj == nil || before != obj.UID {
		c.gone = before
	}
	if obj == nil {
		delete(m.seen, key)
	} else {
		m.seen[key] = obj.UID
	}
	m.changed(c)
}

// absent reports whether a server says of an object that there is none, and not only that it
// does not know the path: what is not available is not absent.
func absent(err error, name string) bool {
	var refused apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &refused) {
		return false
	}
	details := refused.Status().Details
	return refused.Status().Reason == metav1.StatusReasonNotFound && details != nil && details.Name == name
}

// uidOf reads the UID of an object.
func uidOf(answer io.Reader) (types.UID, error) {
	body, err := io.ReadAll(io.LimitReader(answer, mostEventBytes+1))
	if err != nil {
		return "", err
	}
	var obj metav1.PartialObjectMetadata
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&obj); err != nil {
		return "", err
	}
	if obj.Name == "" {
		return "", errNoObject
	}
	return obj.UID, nil
}

var errNoObject = errors.New("the answer is no object")
