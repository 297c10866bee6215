// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// List is what a control plane consists of. Its order is that of the admission chain, of
// the turns of controllers, of health reports, and of extensions of one resource.
type List []Component

// After returns the list with parts inserted after the one with the given name. It panics
// if there is none.
func (l List) After(name string, parts ...Component) List {
	i := slices.IndexFunc(l, func(p Component) bool { return p.Name == name })
	if i < 0 {
		panic("part: there is no part " + name + " to insert others after")
	}
	return slices.Insert(slices.Clone(l), i+1, parts...)
}

// PluginNames returns the names of the admission plugins that can be left out, in order.
func (l List) PluginNames() []string {
	return l.names(func(p *Component) bool { return p.Optional && p.Admission != nil })
}

// ControllerNames returns the names of the controllers that can be left out, in order.
func (l List) ControllerNames() []string {
	return l.names(func(p *Component) bool { return p.Optional && p.Controller != nil })
}

// Versions returns the versions of the API that the resources are served in, as apiVersions have
// them, sorted.
func (l List) Versions() []string {
	var out []string
	for i := range l {
		for _, r := range l[i].Resources {
			for v := range r.Versions {
				out = append(out, r.GroupVersionKind(r.Versions[v].Name).GroupVersion().String())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l List) names(wanted func(*Component) bool) []string {
	var out []string
	for i := range l {
		if wanted(&l[i]) {
			out = append(out, l[i].Name)
		}
	}
	return out
}

// Without returns the list without the optional parts of the given names. Any other name
// is an error.
func (l List) Without(names ...string) (List, error) {
	optional := l.names(func(p *Component) bool { return p.Optional })
	for _, name := range names {
		if !slices.Contains(optional, name) {
			return nil, fmt.Errorf("there is no %q to leave out; there are %s", name, strings.Join(optional, ", "))
		}
	}
	if len(names) == 0 {
		return l, nil
	}
	return slices.DeleteFunc(slices.Clone(l), func(p Component) bool { return slices.Contains(names, p.Name) }), nil
}

// Admission returns the chain of all plugins, nil if there are none. Those up to the last
// one that [Component.Repeats] are a chain of their own, which may run twice. The plugins and
// the chain are measured, under the names of kube-apiserver; nil: they are not.
func (l List) Admission(metrics prometheus.Registerer) resource.Admission {
	var chain resource.Admissions
	var times *passTimes
	if metrics != nil {
		times = newPassTimes()
		metrics.MustRegister(times.plugins, times.chain, times.summary)
	}
	repeated := 0
	for i := range l {
		p := &l[i]
		if a := p.Admission; a != nil {
			if times != nil && p.Optional {
				a = times.plugin(p.Name, a)
			}
			if len(p.For) > 0 {
				a = resource.Restrict(a, p.For...)
			}
			chain = append(chain, a)
		}
		if l[i].Repeats {
			repeated = len(chain)
		}
	}
	if len(chain) == 0 {
		return nil
	}
	if repeated > 0 {
		chain = append(resource.Admissions{resource.Repeated{Admissions: chain[:repeated]}}, chain[repeated:]...)
	}
	if times != nil {
		return times.all(chain)
	}
	return chain
}

// Controllers returns all controllers, in the order of their turns.
func (l List) Controllers() []step.Controller {
	var out []step.Controller
	for i := range l {
		if c := l[i].Controller; c != nil {
			out = append(out, c)
		}
	}
	return out
}

// OnEachServer returns the parts whose controllers run on each of several servers, and the
// others.
func (l List) OnEachServer() (each, leader List) {
	for i := range l {
		if l[i].OnEachServer {
			each = append(each, l[i])
		} else {
			leader = append(leader, l[i])
		}
	}
	return each, leader
}

// Health returns the health checks of all parts.
func (l List) Health() []apiserver.Check {
	var out []apiserver.Check
	for i := range l {
		out = append(out, l[i].Health...)
	}
	return out
}

// Resources returns the resources of all parts, extended. Two resources of one name are an
// error, and so is an extension of a resource that no part has.
func (l List) Resources() ([]*resource.Resource, error) {
	var out []*resource.Resource
	at := map[schema.GroupResource]int{}
	for i := range l {
		for _, r := range l[i].Resources {
			if _, twice := at[r.GroupResource()]; twice {
				return nil, fmt.Errorf("part %q: another part has the resource %s", l[i].Name, r.GroupResource())
			}
			at[r.GroupResource()] = len(out)
			out = append(out, r)
		}
	}
	for i := range l {
		for k := range l[i].Extend {
			e := &l[i].Extend[k]
			found, ok := at[schema.ParseGroupResource(e.Resource)]
			if !ok {
				return nil, fmt.Errorf("part %q extends %s, which no part has", l[i].Name, e.Resource)
			}
			out[found] = e.apply(out[found])
		}
	}
	return out, nil
}

// apply returns an extended copy of a resource.
func (e *Extension) apply(r *resource.Resource) *resource.Resource {
	out := *r
	if e.Subresources != nil || e.Strategy != nil || e.Status != nil {
		out = *r.Changed(e.change)
	}
	if e.Committed != nil {
		out.Committed = e.Committed
		if before := r.Committed; before != nil {
			out.Committed = func(ctx context.Context, change resource.Change) error {
				if err := before(ctx, change); err != nil {
					return err
				}
				return e.Committed(ctx, change)
			}
		}
	}
	return &out
}

func (e *Extension) change(v *resource.Version) {
	v.Subresources = append(v.Subresources, e.Subresources...)
	if e.Strategy != nil {
		v.Strategy = e.Strategy(v.Strategy)
	}
	if e.Status == nil {
		return
	}
	if s := v.Subresource("status"); s != nil {
		s.Strategy = e.Status(s.Strategy)
	}
}

// Install serves the resources and the handlers of all parts.
func (l List) Install(server *apiserver.Server) error {
	resources, err := l.Resources()
	if err != nil {
		return err
	}
	for i := range l {
		for path, h := range l[i].Handlers {
			server.Handle(path, h)
		}
	}
	return server.Install(resources...)
}

// Boot returns the writes and requests of [Component.Boot] of all parts.
func (l List) Boot(view storage.View, now time.Time) ([]storage.Write, []step.Request, error) {
	var writes []storage.Write
	var requests []step.Request
	for i := range l {
		if l[i].Boot == nil {
			continue
		}
		w, r, err := l[i].Boot(view, now)
		if err != nil {
			return nil, nil, fmt.Errorf("part %q: %w", l[i].Name, err)
		}
		writes, requests = append(writes, w...), append(requests, r...)
	}
	return writes, requests, nil
}

// Load runs [Component.Load] of all parts.
func (l List) Load(ctx context.Context) error {
	var errs []error
	for i := range l {
		if l[i].Load != nil {
			errs = append(errs, l[i].Load(ctx))
		}
	}
	return errors.Join(errs...)
}

// Follows returns the buckets of [Component.Follows] of all parts.
func (l List) Follows() []string {
	var out []string
	for i := range l {
		out = append(out, l[i].Follows...)
	}
	return out
}

// Lead runs [Component.Lead] of all parts.
func (l List) Lead(ctx context.Context) error {
	for i := range l {
		if lead := l[i].Lead; lead != nil {
			if err := lead(ctx); err != nil {
				return fmt.Errorf("part %q: %w", l[i].Name, err)
			}
		}
	}
	return nil
}

// Close runs [Component.Close] of all parts.
func (l List) Close() {
	for i := range l {
		if l[i].Close != nil {
			l[i].Close()
		}
	}
}
