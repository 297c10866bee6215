// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
)

// Bounds of what other servers are asked.
const (
	// sweepTimeout is how long one of them may take to delete its objects of a resource in a
	// namespace, and to say what is left.
	sweepTimeout = 30 * time.Second
	// firstSweep and lastSweep are the delays before it is asked again.
	firstSweep, lastSweep = time.Second, 15 * time.Second
)

// elsewhere is what other servers have in a namespace.
type elsewhere struct {
	// swept are the outcomes by resource, in the form "plural.group".
	swept map[string]*swept
	// again is when what is not finished is looked at again; zero: it does not have to be.
	// anew reports that the time has come.
	again time.Time
	anew  bool
	tries int
}

// swept is the outcome of a request to delete the objects of a resource. A sender writes it,
// the controller reads it once the request is reported.
type swept struct {
	left content
	err  error
}

// finished reports that nothing is left.
func (s *swept) finished() bool { return s.err == nil && s.left.total == 0 }

// rings reports that the time has come to look again.
func (e *elsewhere) rings(now time.Time) bool {
	if e.again.IsZero() || now.Before(e.again) {
		return false
	}
	e.again, e.anew = time.Time{}, true
	return true
}

// sweeps returns the requests that delete what other servers have: the first one of each
// resource, and those that have to be repeated.
func (n *Emptier) sweeps(e *elsewhere, namespace string, about step.Subject) []step.Request {
	known := map[string]*swept{}
	var out []step.Request
	for _, r := range n.catalog.Elsewhere().Resources {
		if !r.Namespaced || !r.Can("delete") {
			continue
		}
		about.Detail = r.GroupResource()
		last := e.swept[about.Detail]
		if last == nil || e.anew && !last.finished() {
			last = &swept{}
			out = append(out, n.sweep(r, namespace, about, last))
		}
		known[about.Detail] = last
	}
	e.swept, e.anew = known, false
	return out
}

// left returns what other servers have not deleted, and the errors of those that failed by
// resource.
func (e *elsewhere) left(failures map[string]string) (left []content, all map[string]string) {
	all = maps.Clone(failures)
	for name, s := range e.swept {
		if s.err != nil {
			all[name] = said(s.err)
		}
		if s.left.total > 0 {
			left = append(left, s.left)
		}
	}
	return left, all
}

// schedule decides when what is not finished is looked at again.
func (e *elsewhere) schedule(now time.Time, stale bool) {
	unfinished := stale
	for _, s := range e.swept {
		unfinished = unfinished || !s.finished()
	}
	switch {
	case !unfinished:
		e.again, e.tries = time.Time{}, 0
	case e.again.IsZero():
		e.again = now.Add(min(firstSweep<<min(e.tries, 10), lastSweep))
		e.tries++
	}
}

// sweep returns the request that has another server delete its objects of a resource in a
// namespace. A server that refuses, or does not answer, is no failure of this controller: it
// is asked again, and only the namespaces wait in which it may have objects.
func (n *Emptier) sweep(r step.Resource, namespace string, about step.Subject, into *swept) step.Request {
	return step.Request{
		User: step.NamespaceController, Method: http.MethodDelete, Path: r.Collection(namespace), Subject: about,
		Do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
			defer cancel()
			into.left, into.err = n.empty(ctx, r, namespace)
			return nil
		},
	}
}

// empty deletes the objects of a resource in a namespace, and returns what is left.
func (n *Emptier) empty(ctx context.Context, r step.Resource, namespace string) (content, error) {
	whole := false
	if r.Can("deletecollection") {
		err := n.delete(ctx, r.Collection(namespace))
		switch {
		case err == nil:
			whole = true
		case !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err):
			return content{}, err
		}
	}
	if !r.Can("list") {
		return content{}, nil
	}
	if !whole {
		each := func(m *metav1.PartialObjectMetadata) error {
			if err := n.delete(ctx, r.Collection(namespace)+"/"+url.PathEscape(m.Name)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				return err
			}
			return nil
		}
		if err := n.list(ctx, r, namespace, each); err != nil {
			return content{}, err
		}
	}
	left := content{resource: r, finalizers: map[string]int{}}
	err := n.list(ctx, r, namespace, func(m *metav1.PartialObjectMetadata) error {
		left.total++
		for _, f := range m.Finalizers {
			left.finalizers[f]++
		}
		return nil
	})
	if err == nil && left.total > 0 && len(left.finalizers) == 0 {
		err = fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %s/%s, Resource=%s", namespace, r.Group, r.Version, r.Plural)
	}
	return left, err
}

// said is what a condition says about an error: its message in client-go.
func said(err error) string { return step.ClientError(err, "", schema.GroupResource{}, "").Error() }

// delete deletes what is at a path, in the background.
func (n *Emptier) delete(ctx context.Context, path string) error {
	answer, err := n.fetch(ctx, step.Delete(step.NamespaceController, path, inBackground(), step.Subject{}))
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

// list calls a function for the metadata of all objects of a resource in a namespace. A
// server that has no such resource has no objects.
func (n *Emptier) list(ctx context.Context, r step.Resource, namespace string, each func(*metav1.PartialObjectMetadata) error) error {
	var failed error
	_, err := n.fetch.List(ctx, step.NamespaceController, r.Collection(namespace), func(m *metav1.PartialObjectMetadata) error {
		failed = each(m)
		return failed
	})
	if failed == nil && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) {
		return nil
	}
	return err
}
