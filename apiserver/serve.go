// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

// serve handles every request: it routes it, lets it in and answers it.
func (s *Server) serve(hw http.ResponseWriter, r *http.Request) {
	start := time.Now()
	var event *audit.Event // nil: requests are not recorded
	if s.options.Audit != nil {
		hw, r, event = s.options.Audit.Receive(hw, r, start)
	}
	req, in := s.newRequest(r)
	w := &exchange.Writer{ResponseWriter: hw, Warnings: req.Warnings, Deadlines: exchange.NewDeadlines(hw)}
	defer w.Deadlines.Done()
	header := w.Header()
	id := r.Header.Get("Audit-Id")
	if id == "" {
		id = string(s.entropy.AuditID())
	}
	header.Set("Audit-Id", id)
	req.AuditID = id
	event.SetID(id)
	header.Set("Cache-Control", "no-cache, private")
	if directives := s.options.StrictTransportSecurity; len(directives) > 0 {
		header.Set("Strict-Transport-Security", strings.Join(directives, "; "))
	}
	defer func() {
		if v := recover(); v != nil {
			event.Panicked(v)
			s.recovered(w, req, v)
		}
		event.Complete()
		s.metrics.observe(req, in, w.Code, time.Since(start))
	}()
	limit, malformed := s.timeout(req)
	if limit > 0 {
		w.Deadlines.Bound(r, limit)
	}
	if req.Info.Malformed {
		http.Error(w, fmt.Sprintf("Internal Server Error: %q: failed to create RequestInfo: unable to determine kind and namespace from url, %s", r.URL.RequestURI(), r.URL.RequestURI()), http.StatusInternalServerError)
		return
	}
	if err := s.admitted(w, r, req, limit, malformed); err != nil {
		s.fail(w, req, err)
	}
}

// recovered answers for a handler that panicked. A partly sent answer is aborted, so
// that no client takes it for a complete one.
func (s *Server) recovered(w *exchange.Writer, req *endpoint.Request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.options.Log.Error("a request handler panicked", "verb", req.Verb, "path", req.Path, "panic", v, "stack", string(debug.Stack()))
	if w.Code != 0 {
		panic(http.ErrAbortHandler)
	}
	s.fail(w, req, apierrors.NewInternalError(fmt.Errorf("the server panicked while handling the request: %v", v)))
}

// admitted lets a request in and runs its handler. Every server takes the same steps in the
// same order: what needs no store is verified, the store is waited for, what credentials
// rest on is looked up, the request is authorized, takes a slot, and then its body is
// read. Requests that are not long-running have a time limit; 0 is none; malformed is the
// error of a timeout parameter that cannot be parsed.
func (s *Server) admitted(w *exchange.Writer, r *http.Request, req *endpoint.Request, limit time.Duration, malformed error) (err error) {
	ctx := r.Context()
	if limit > 0 {
		limited := exchange.Within(ctx, limit)
		defer func() {
			// Reading the body may have ended first, which ends the context of the request.
			if err != nil && !req.LongRunning() && (errors.Is(err, context.DeadlineExceeded) || errors.Is(limited.Err(), context.DeadlineExceeded)) {
				err = errTimedOut // whatever failed for want of time
			}
			limited.Stop()
		}()
		ctx = limited
	}
	arrived := &arrival{server: s, req: req}
	defer arrived.end()
	if err := s.allowed(ctx, w, r, req, arrived); err != nil {
		return err
	}
	leave, err := s.inFlight.Enter(digest(req, req.User))
	if err != nil {
		return s.elsewhere(err)
	}
	defer leave()
	arrived.end()
	if s.leadership != nil && changes(req) && !executing(ctx) {
		done, err := s.led(ctx, w, r, req, arrived)
		if err != nil || done == nil {
			return err
		}
		defer done()
		ctx = context.WithValue(ctx, executingKey{}, true)
	}
	ctx = resource.WithRequest(auth.WithUser(ctx, req.User), &req.Request)
	switch {
	case req.LongRunning():
		w.Deadlines.Lift()
		ctx = resource.WithRequest(auth.WithUser(r.Context(), req.User), &req.Request)
	case malformed != nil:
		return malformed
	}
	return s.dispatch(ctx, w, req)
}

// allowed authenticates and authorizes a request on a state of the store that is not older
// than the request.
func (s *Server) allowed(ctx context.Context, w *exchange.Writer, r *http.Request, req *endpoint.Request, arrived *arrival) error {
	user, err := arrived.authenticate(ctx, r)
	if err != nil {
		if e := s.event(ctx); e != nil {
			e.Refuse(attributes(req, req.Verb))
		}
		return err
	}
	req.User, arrived.user = user, user
	if e := s.event(ctx); e != nil {
		if err := e.Decide(attributes(req, req.Verb), req.LongRunning()); err != nil {
			return err
		}
	}
	if !isProbe(req) {
		lag := time.Duration(0)
		if req.AnyRevision() {
			lag = maxLag
		}
		if err := arrived.await(ctx, user, lag); err != nil {
			return err
		}
		if s.leadership != nil {
			if err := s.catchUp(ctx, req); err != nil {
				return err
			}
		}
	}
	if err := s.impersonate(ctx, r, req); err != nil {
		return err
	}
	asked := attributes(req, req.Verb)
	s.classify(ctx, w.Header(), req, asked)
	return s.authorize(ctx, asked)
}

// Headers that name the flow schema and priority level of a request, in canonical form.
const (
	flowSchemaHeader    = "X-Kubernetes-Pf-Flowschema-Uid"
	priorityLevelHeader = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// classify sets the headers with the flow schema and the priority level of a request,
// except for connections, which API priority and fairness does not cover.
func (s *Server) classify(ctx context.Context, header http.Header, req *endpoint.Request, a *auth.Attributes) {
	if s.options.Classify == nil || req.Verb != "watch" && req.LongRunning() {
		return
	}
	if schema, level := s.options.Classify(ctx, a); schema != "" {
		header[flowSchemaHeader], header[priorityLevelHeader] = []string{string(schema)}, []string{string(level)}
	}
}

// event returns what is recorded of the request that a context belongs to, nil if nothing is.
func (s *Server) event(ctx context.Context) *audit.Event {
	if s.options.Audit == nil {
		return nil
	}
	return audit.From(ctx)
}

// timeout returns the time limit of a request: its timeout parameter, at most the
// server's own limit; the error reports a parameter that cannot be parsed.
func (s *Server) timeout(req *endpoint.Request) (time.Duration, error) {
	usual := s.limits.RequestTimeout
	if !strings.Contains(req.HTTP.URL.RawQuery, "timeout=") {
		return usual, nil
	}
	asked := req.Query().Get("timeout")
	if asked == "" {
		return usual, nil
	}
	d, err := time.ParseDuration(asked)
	if err != nil {
		return usual, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - time: %s", err.Error()[len("time: "):]))
	}
	if d <= 0 || usual > 0 && d > usual {
		return usual, nil
	}
	return d, nil
}

// impersonate lets a request continue as the user in its impersonation headers.
func (s *Server) impersonate(ctx context.Context, r *http.Request, req *endpoint.Request) error {
	as, err := auth.WantedUser(r.Header)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if as == nil {
		return nil
	}
	as, constraint, err := s.impersonator.Impersonate(ctx, attributes(req, req.Verb), as)
	if err != nil {
		return err
	}
	s.event(ctx).Impersonates(as, constraint)
	req.User = as
	clean := r.Clone(r.Context())
	auth.StripImpersonation(clean.Header)
	req.HTTP = clean
	return nil
}

// authorizeCreate authorizes the creation of an object by a request that did not find
// one to change.
func (s *Server) authorizeCreate(ctx context.Context, r *resource.Request) error {
	return s.authorize(ctx, &auth.Attributes{
		User: r.User, Verb: "create", Path: r.Path, ResourceRequest: true,
		Group: r.Resource.Group, Version: r.Version.Name, Resource: r.Resource.Plural, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name,
	})
}

func (s *Server) authorize(ctx context.Context, a *auth.Attributes) error {
	decision, reason, err := s.options.Authorizer.Authorize(ctx, a)
	s.event(ctx).Authorized(decision, reason, err)
	err = auth.Refusal(a, decision, reason, err)
	if refused, ok := errors.AsType[*auth.RefusedError](err); ok && refused.Err != nil {
		return apierrors.NewInternalError(refused.Err) // the client may retry
	}
	return err
}

// attributes returns the attributes of a request for the authorizer.
func attributes(r *endpoint.Request, verb string) *auth.Attributes {
	a := &auth.Attributes{User: r.User, Verb: verb, Path: r.Path}
	if t := &r.Info; t.Resource {
		a.ResourceRequest = true
		a.Group, a.Version, a.Resource, a.Subresource = t.Group, t.Version, t.Plural, t.Subresource
		a.Namespace, a.Name = r.Namespace, r.Name
		if !t.Watch && (verb == "list" || verb == "watch" || verb == "deletecollection") {
			a.Selected = selected(r)
		}
	}
	return a
}

// selected returns a function that parses the selectors of a request, nil if it has
// none. An invalid selector has no requirements; it is refused later.
func selected(r *endpoint.Request) func() (fields.Requirements, labels.Requirements) {
	if !strings.Contains(r.HTTP.URL.RawQuery, "Selector=") {
		return nil
	}
	return func() (byField fields.Requirements, byLabel labels.Requirements) {
		if s, err := fields.ParseSelector(r.Query().Get("fieldSelector")); err == nil {
			byField = s.Requirements()
		}
		if s, err := labels.Parse(r.Query().Get("labelSelector")); err == nil {
			byLabel, _ = s.Requirements()
		}
		return byField, byLabel
	}
}

// dispatch calls the handler of a request.
func (s *Server) dispatch(ctx context.Context, w *exchange.Writer, req *endpoint.Request) error {
	t := s.table.Load()
	if other := t.elsewhere(req.Path); other != nil {
		other.ServeHTTP(w, req.HTTP.WithContext(ctx))
		return nil
	}
	if req.Served == nil {
		h := t.handler(req.Path)
		if h == nil && !req.Info.Resource && isDiscovery(req.Path) {
			if t.readOnly(req.Path) && req.HTTP.Method != http.MethodGet {
				return endpoint.Refusal(http.StatusMethodNotAllowed, "")
			}
			if version, core := strings.CutPrefix(req.Path, "/api/"); core && version != "" && !t.serves("", strings.Trim(version, "/")) || t.lacks(req.Path) {
				return endpoint.NoSuchResource()
			}
			h = t.discovery()
		}
		if h == nil && (req.Path == "/openapi/v2" || req.Path == "/openapi/v3" || strings.HasPrefix(req.Path, "/openapi/v3/")) {
			h = t.openapi()
		}
		if h != nil {
			h.ServeHTTP(w, req.HTTP.WithContext(ctx))
			return nil
		}
		return s.unknownPath(w, req)
	}
	err := s.endpoint.Serve(ctx, w, req)
	if errors.Is(err, registry.ErrRedefined) {
		return s.anew(ctx, w, req)
	}
	return err
}

// isDiscovery reports whether discovery documents are at or below a path.
func isDiscovery(path string) bool {
	return path == "/api" || path == "/apis" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/")
}

// readOnly reports whether a discovery path accepts GET only: paths of built-in kinds
// do; paths of groups and of custom resources accept any method.
func (t *served) readOnly(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api":
		return true
	case len(parts) == 3:
		return t.serves(parts[1], parts[2])
	}
	return false
}

// anew answers a request again after its resource was redefined. Nothing was stored
// before.
func (s *Server) anew(ctx context.Context, w *exchange.Writer, req *endpoint.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := req.Served.Storage.Definition.WaitSynced(ctx); err != nil {
		return fmt.Errorf("follow the definition of %s: %w", req.Served.GroupResource(), err)
	}
	again := req.Retry()
	s.find(again)
	return s.dispatch(resource.WithRequest(ctx, &again.Request), w, again)
}

// unknownPath answers for a path that is not served: as text, by which clients
// distinguish it from an unknown object, except below the paths of built-in kinds.
func (s *Server) unknownPath(w *exchange.Writer, req *endpoint.Request) error {
	t, builtin := s.table.Load(), req.Path == "/api" || strings.HasPrefix(req.Path, "/api/")
	if builtin || t.lacks(req.Path) || req.Info.Resource && !strings.HasPrefix(req.Path, "//") && t.serves(req.Info.Group, req.Info.Version) {
		return endpoint.NoSuchResource()
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
	return nil
}

// lacks reports whether a path is of a version that is not served of a group with built-in kinds.
func (t *served) lacks(path string) bool {
	below, named := strings.CutPrefix(path, "/apis/")
	group, version, _ := strings.Cut(below, "/")
	version, _, _ = strings.Cut(version, "/")
	if !named || group == "" || version == "" {
		return false
	}
	builtin := false
	for _, in := range t.resources {
		if in.Group != group {
			continue
		}
		for i := range in.Versions {
			if v := &in.Versions[i]; !v.NotServed {
				if v.Name == version {
					return false
				}
				builtin = builtin || v.Typed()
			}
		}
	}
	return builtin
}

// serves reports whether a group version has built-in kinds.
func (t *served) serves(group, version string) bool {
	for _, in := range t.resources {
		if v := in.Version(version); v != nil && in.Group == group && v.Typed() && !v.NotServed {
			return true
		}
	}
	return false
}

// errTimedOut is the error of a request whose time limit has passed.
var errTimedOut = errors.New("the time limit of the request has passed")

// fail answers with the Status of an error.
func (s *Server) fail(w *exchange.Writer, req *endpoint.Request, err error) {
	if w.Code != 0 {
		s.options.Log.Error("an answer was cut short", "verb", req.Verb, "path", req.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, errTimedOut) {
		exchange.SendTimedOut(w)
		return
	}
	status := s.endpoint.Status(req, err)
	s.event(req.HTTP.Context()).Status(status)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
	}
	exchange.SendStatus(w, req.HTTP, int(status.Code), status)
}
