// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// Plane answers the questions of a page about the objects of a control plane. It is safe for
// concurrent use.
type Plane struct {
	// Connect opens the control plane, at the first question.
	Connect func(ctx context.Context) (versions.Source, error)
	// Records say who wrote what, and so do those in Dirs, which need not be there yet.
	Records []trace.Record
	Dirs    []string
	// Recent returns further ones, for each question. nil: none.
	Recent func() []trace.Record

	mu     sync.Mutex
	source versions.Source

	listing sync.Mutex // of who lists; others wait for the same list
	listed  dashboard.List
	until   time.Time // when it is listed again
}

var _ dashboard.Objects = (*Plane)(nil)

// NewPlane returns one of a server, which is asked with the rights of the config's user, and
// of the records in directories.
func NewPlane(config *rest.Config, dirs ...string) *Plane {
	return &Plane{Dirs: dirs, Connect: func(ctx context.Context) (versions.Source, error) { return versions.Connect(ctx, config) }}
}

// connect opens the control plane once.
func (p *Plane) connect(ctx context.Context) (versions.Source, error) {
	p.mu.Lock()
	source := p.source
	p.mu.Unlock()
	if source != nil {
		return source, nil
	}
	source, err := p.Connect(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.source = source
	p.mu.Unlock()
	return source, nil
}

// facts are what is known for one question.
func (p *Plane) facts(ctx context.Context) (*chain.Facts, error) {
	source, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	rec := &records{all: p.Records, known: map[trace.Object][]trace.Record{}, warn: func(error) {}} // the page has told them
	if p.Recent != nil {
		rec.all = slices.Concat(rec.all, p.Recent())
	}
	for _, dir := range p.Dirs {
		if reader, err := recording.Open(dir); err == nil { // else the operator has not made it yet
			rec.dirs = append(rec.dirs, reader)
		}
	}
	rec.none = len(rec.all) == 0 && len(rec.dirs) == 0
	return newFacts(ctx, source, rec, "there are no records of operators"), nil
}

// mostOnPage is how many versions of an object are looked at for a page.
const mostOnPage = 100

// History implements [dashboard.Objects].
func (p *Plane) History(ctx context.Context, object trace.Object) (out dashboard.History, err error) {
	facts, err := p.facts(ctx)
	if err != nil {
		return out, err
	}
	found, err := facts.History(ctx, object, mostOnPage)
	if err != nil {
		return out, err
	}
	out.End = found.End
	for i := range found.Versions {
		v := &found.Versions[i]
		version := dashboard.Version{Revision: v.Revision, Time: v.Time, Change: v.Change, Manager: v.Manager, User: v.User, Missing: v.Missing}
		if v.Reconcile != nil {
			version.Reconcile = v.Reconcile.ID
		}
		for _, f := range v.Fields {
			field := dashboard.Field{Path: f.Path}
			if v.Values && (object.Group != "" || object.Kind != "Secret") {
				field.Old, field.New = chain.Value(f.Old), chain.Value(f.New)
			}
			version.Fields = append(version.Fields, field)
		}
		for _, c := range v.Conditions() {
			version.Conditions = append(version.Conditions, dashboard.Condition(c))
		}
		out.Versions = append(out.Versions, version)
	}
	return out, nil
}

// List implements [dashboard.Objects]. A page asks again and again: a list serves for ten times
// as long as it took.
func (p *Plane) List(ctx context.Context) (dashboard.List, error) {
	p.listing.Lock()
	defer p.listing.Unlock()
	began := time.Now()
	if began.Before(p.until) {
		return p.listed, nil
	}
	source, err := p.connect(ctx)
	if err != nil {
		return dashboard.List{}, err
	}
	all, missing := source.All(ctx, "")
	if err := ctx.Err(); err != nil {
		return dashboard.List{}, err
	}
	p.listed = dashboard.List{Missing: missing}
	for _, o := range all {
		p.listed.Nodes = append(p.listed.Nodes, nodeOf(chain.NodeOf(o)))
	}
	slices.SortFunc(p.listed.Nodes, func(a, b dashboard.Node) int {
		switch {
		case a.NotReady != b.NotReady && a.NotReady:
			return -1
		case a.NotReady != b.NotReady:
			return 1
		}
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Object.String(), b.Object.String()))
	})
	ended := time.Now()
	p.until = ended.Add(max(10*ended.Sub(began), time.Second))
	return p.listed, nil
}

// Tree implements [dashboard.Objects].
func (p *Plane) Tree(ctx context.Context, object trace.Object) (out dashboard.Tree, err error) {
	facts, err := p.facts(ctx)
	if err != nil {
		return out, err
	}
	tree, err := treeOf(ctx, facts, object)
	if err != nil {
		return out, err
	}
	out.Root, out.Missing = nodeOf(tree.Root), tree.Missing
	for _, owner := range tree.Owners {
		out.Owners = append(out.Owners, nodeOf(owner))
	}
	return out, nil
}

func nodeOf(n *chain.Node) dashboard.Node {
	out := dashboard.Node{Object: n.Ref, Message: n.Message, Blocked: n.Blocked(), NotReady: n.NotReady(), Created: n.Created}
	if n.Type != "" {
		out.State = strings.TrimSpace(n.Type + "=" + n.Ready + " " + n.Reason)
	}
	if n.Why != "" && !strings.Contains(out.State, n.Why) {
		out.State = strings.TrimPrefix(out.State+"; "+n.Why, "; ")
	}
	for _, child := range n.Children {
		out.Children = append(out.Children, nodeOf(child))
	}
	return out
}
