// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/storage"
)

// revisionTimeout is how long a read waits for a revision that the store has not
// reached yet.
const revisionTimeout = 3 * time.Second

// ViewAtLeast returns the newest view. It waits until the store has reached a revision.
func (g *Registry) ViewAtLeast(ctx context.Context, atLeast storage.Revision) (storage.View, error) {
	view := g.store.Latest()
	if view.Revision() >= atLeast {
		return view, nil
	}
	wait, cancel := context.WithTimeout(ctx, revisionTimeout)
	defer cancel()
	cursor, err := g.store.Watch(storage.Range{}, view.Revision())
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for {
		batch, err := cursor.Next(wait)
		switch {
		case err == nil && batch.Revision >= atLeast:
			return g.store.Latest(), nil
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil, g.aheadOf(atLeast)
		default:
			return nil, err
		}
	}
}

// Newest returns the newest revision.
func (g *Registry) Newest() storage.Revision { return g.store.Latest().Revision() }

// Get reads one object at a revision that is not older than atLeast.
func (g *Registry) Get(ctx context.Context, in *Served, namespace, name string, atLeast storage.Revision) (*storage.Record, error) {
	if atLeast > 0 {
		if _, err := g.ViewAtLeast(ctx, atLeast); err != nil {
			return nil, err
		}
	}
	rec := g.store.Get(in.Key(namespace, name))
	if rec == nil {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	return rec, nil
}

// Watch returns a cursor over the changes of the records that a selection may select,
// after a revision.
func (g *Registry) Watch(sel *Selection, after storage.Revision) (storage.Cursor, error) {
	return g.store.Watch(sel.storageRange(), after)
}

// aheadOf is the 504 for a revision that does not exist yet.
func (g *Registry) aheadOf(asked storage.Revision) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, g.Newest()), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// Page is one answer to a list.
type Page struct {
	// Records in the version of the request; see [Registry.ConvertedAll].
	Records  []*storage.Record
	Revision storage.Revision
	// Continue is where the next page begins; empty for the last one.
	Continue string
	// Remaining counts the objects of further pages; nil if it is not known.
	Remaining *int64
}

// List returns the page that the options ask for.
func (g *Registry) List(ctx context.Context, sel *Selection, options *internalversion.ListOptions) (*Page, error) {
	view, start, limit, err := g.viewFor(ctx, options)
	if err != nil {
		return nil, err
	}
	p := &Page{Revision: view.Revision()}
	if key, ok := sel.key(); ok {
		if rec := view.Get(key); rec != nil && rec.Key.Name >= sel.prefix()+start {
			if rec, err = g.Converted(ctx, sel.in, sel.v, rec); err != nil {
				return nil, err
			}
			if err = p.add(ctx, sel, rec); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	if sel.Everything() && limit == 0 {
		p.Records = make([]*storage.Record, 0, view.Count(sel.in.Storage.Bucket, sel.prefix(), start))
	}
	all := view.Ascend(sel.in.Storage.Bucket, sel.prefix(), sel.prefix()+start)
	candidates := unconverted(all)
	if !sel.Everything() {
		candidates = sel.Converted(ctx, all)
	}
	for rec, err := range candidates {
		if err != nil {
			return nil, err
		}
		if limit > 0 && int64(len(p.Records)) == limit {
			last := p.Records[len(p.Records)-1].Key.Name
			next := last[len(sel.prefix()):] + "\x00"
			p.Continue = continuation{Revision: int64(view.Revision()), Start: next}.encode()
			if sel.Everything() {
				remaining := int64(view.Count(sel.in.Storage.Bucket, sel.prefix(), sel.prefix()+next))
				p.Remaining = &remaining
			}
			break
		}
		if err := p.add(ctx, sel, rec); err != nil {
			return nil, err
		}
	}
	p.Records, err = g.ConvertedAll(ctx, sel.in, sel.v, p.Records)
	return p, err
}

// add adds a record to the page if it is selected.
func (p *Page) add(ctx context.Context, sel *Selection, rec *storage.Record) error {
	selected, err := sel.Matches(ctx, rec)
	if selected {
		p.Records = append(p.Records, rec)
	}
	return err
}

// viewFor returns the snapshot that a list is read from, the name at which to start,
// and the number of records to read.
func (g *Registry) viewFor(ctx context.Context, o *internalversion.ListOptions) (view storage.View, start string, limit int64, err error) {
	limit = o.Limit
	if o.Continue != "" {
		token, err := decodeContinuation(o.Continue)
		if err != nil {
			return nil, "", 0, err
		}
		if o.ResourceVersion != "" && o.ResourceVersion != "0" {
			return nil, "", 0, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		at := storage.Revision(token.Revision)
		if token.Revision < 0 {
			at = 0
		}
		view, err = g.viewAt(ctx, at, token.Start)
		return view, token.Start, limit, err
	}
	at, err := ParseRevision(o.ResourceVersion)
	if err != nil {
		return nil, "", 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && limit > 0 && at > 0
	if exact {
		view, err = g.viewAt(ctx, at, "")
		return view, "", limit, err
	}
	if o.ResourceVersion == "0" {
		limit = 0 // "any revision" has always been answered in one piece
	}
	view, err = g.ViewAtLeast(ctx, at)
	return view, "", limit, err
}

// viewAt returns the view at a revision; start is that of a continued list.
func (g *Registry) viewAt(ctx context.Context, at storage.Revision, start string) (storage.View, error) {
	view, err := g.store.View(ctx, at)
	switch {
	case isExpired(err):
		return nil, expiredList(start)
	case errors.Is(err, storage.ErrFuture):
		return nil, g.aheadOf(at)
	}
	return view, err
}

// ParseRevision parses a resourceVersion; empty and "0" are 0.
func ParseRevision(text string) (storage.Revision, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", text, err)
	}
	return storage.Revision(n), nil
}
