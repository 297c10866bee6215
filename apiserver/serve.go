// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// serve is the way of every request: identify it, find out who asks, whether
// there is room, whether they may, and answer.
func (s *Server) serve(hw http.ResponseWriter, r *http.Request) {
	start := time.Now()
	req := s.newRequest(r)
	w := &exchange.Writer{ResponseWriter: hw, Warnings: req.Warnings}
	header := w.Header()
	audit := r.Header.Get("Audit-Id")
	if audit == "" {
		audit = string(s.entropy.AuditID())
	}
	header.Set("Audit-Id", audit)
	header.Set("Cache-Control", "no-cache, private")
	defer func() {
		if v := recover(); v != nil {
			s.recovered(w, req, v)
		}
		s.metrics.observe(req, w, time.Since(start))
	}()
	if err := s.admitted(w, r, req); err != nil {
		s.fail(w, req, err)
	}
}

// recovered answers for a handler that panicked: a half-sent answer is aborted,
// so that nobody takes it for a whole one.
func (s *Server) recovered(w *exchange.Writer, req *request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.options.Log.Error("a request handler panicked", "verb", req.Verb, "path", req.Path, "panic", v, "stack", string(debug.Stack()))
	if w.Code != 0 {
		panic(http.ErrAbortHandler)
	}
	s.fail(w, req, apierrors.NewInternalError(fmt.Errorf("the server panicked while handling the request: %v", v)))
}

// admitted runs the checks of the chain and then the handler.
func (s *Server) admitted(w *exchange.Writer, r *http.Request, req *request) error {
	user := auth.UserFrom(r.Context())
	if user == nil {
		var err error
		if user, err = s.options.Authenticator.Authenticate(r); err != nil || user == nil {
			return apierrors.NewUnauthorized("Unauthorized")
		}
		if !user.In(auth.Authenticated) && !user.In(auth.Unauthenticated) {
			known := *user
			known.Groups = append(append([]string{}, user.Groups...), auth.Authenticated)
			user = &known
		}
	}
	req.User = user
	if err := s.impersonate(r, req); err != nil {
		return err
	}
	leave, err := s.gate.Enter(req.passage())
	if err != nil {
		return err
	}
	defer leave()
	if err := s.authorize(r.Context(), req, req.Verb); err != nil {
		return err
	}
	ctx := resource.WithRequest(auth.WithUser(r.Context(), req.User), &req.Request)
	if !req.longRunning() {
		timeout, err := s.timeout(req)
		if err != nil {
			return err
		}
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
	}
	return s.dispatch(ctx, w, req)
}

// timeout of a request: what it asks for, up to the server's own.
func (s *Server) timeout(req *request) (time.Duration, error) {
	usual := s.limits.RequestTimeout
	if !strings.Contains(req.http.URL.RawQuery, "timeout=") {
		return usual, nil
	}
	asked := req.query().Get("timeout")
	if asked == "" {
		return usual, nil
	}
	d, err := time.ParseDuration(asked)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - time: %s", err.Error()[len("time: "):]))
	}
	if d <= 0 || usual > 0 && d > usual {
		return usual, nil
	}
	return d, nil
}

// impersonate lets a request go on as the user that its headers ask for.
func (s *Server) impersonate(r *http.Request, req *request) error {
	as, err := auth.WantedUser(r.Header)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if as == nil {
		return nil
	}
	if as, err = s.impersonator.Impersonate(r.Context(), req.attributes(req.Verb), as); err != nil {
		return err
	}
	req.User = as
	clean := r.Clone(r.Context())
	auth.StripImpersonation(clean.Header)
	req.http = clean
	return nil
}

// authorize asks whether a request may be done with a verb.
func (s *Server) authorize(ctx context.Context, req *request, verb string) error {
	err := auth.Check(ctx, s.options.Authorizer, req.attributes(verb))
	if refused, ok := errors.AsType[*auth.RefusedError](err); ok && refused.Err != nil {
		return apierrors.NewInternalError(refused.Err) // asking again may help
	}
	return err
}

// attributes are what an authorizer decides on.
func (r *request) attributes(verb string) *auth.Attributes {
	a := &auth.Attributes{User: r.User, Verb: verb, Path: r.Path}
	if t := &r.target; t.Resource {
		a.ResourceRequest = true
		a.Group, a.Version, a.Resource, a.Subresource = t.Group, t.Version, t.Plural, t.Subresource
		a.Namespace, a.Name = r.Namespace, r.Name
		if verb == "list" || verb == "watch" || verb == "deletecollection" {
			a.Fields, a.Labels = r.selected()
		}
	}
	return a
}

// selected returns what the selectors of a request require. One that cannot be
// read requires nothing; it is refused later.
func (r *request) selected() (fields.Requirements, labels.Requirements) {
	if !strings.Contains(r.http.URL.RawQuery, "Selector=") {
		return nil, nil
	}
	var byField fields.Requirements
	var byLabel labels.Requirements
	if s, err := fields.ParseSelector(r.query().Get("fieldSelector")); err == nil {
		byField = s.Requirements()
	}
	if s, err := labels.Parse(r.query().Get("labelSelector")); err == nil {
		byLabel, _ = s.Requirements()
	}
	return byField, byLabel
}

// dispatch runs what answers the request.
func (s *Server) dispatch(ctx context.Context, w *exchange.Writer, req *request) error {
	t := s.table.Load()
	if other := t.elsewhere(req.Path); other != nil {
		other.ServeHTTP(w, req.http.WithContext(ctx))
		return nil
	}
	if req.in == nil {
		h := t.handler(req.Path)
		if h == nil && !req.target.Resource && (req.Path == "/api" || req.Path == "/apis" || strings.HasPrefix(req.Path, "/api/") || strings.HasPrefix(req.Path, "/apis/")) {
			if version, core := strings.CutPrefix(req.Path, "/api/"); core && !t.serves("", strings.Trim(version, "/")) {
				return noSuchResource()
			}
			h = t.discovery()
		}
		if h == nil && (req.Path == "/openapi/v2" || req.Path == "/openapi/v3" || strings.HasPrefix(req.Path, "/openapi/v3/")) {
			h = t.openapi()
		}
		if h != nil {
			h.ServeHTTP(w, req.http.WithContext(ctx))
			return nil
		}
		return s.unknownPath(w, req)
	}
	if req.Subresource != "" && req.sub == nil {
		if req.Version.Typed() {
			return noSuchResource()
		}
		return apierrors.NewNotFound(req.groupResource(), req.Name)
	}
	answer := s.verbOf(req)
	if text := req.Version.Deprecation; text != "" && (answer != nil || !req.Version.Typed()) {
		req.Warn(text)
	}
	switch {
	case answer != nil:
		return answer(ctx, w, req)
	case req.Version.Typed() || req.in.Backend != nil:
		return generic(http.StatusMethodNotAllowed, "")
	case req.Name == "" && (req.Verb == "update" || req.Verb == "patch"):
		return apierrors.NewBadRequest("name must be provided")
	}
	return apierrors.NewMethodNotSupported(req.groupResource(), req.Verb)
}

// unknownPath answers for a path that nothing serves: as text, by which clients
// tell it from an unknown object, except among the built-in kinds.
func (s *Server) unknownPath(w *exchange.Writer, req *request) error {
	builtin := req.Path == "/api" || strings.HasPrefix(req.Path, "/api/")
	if builtin || req.target.Resource && s.table.Load().serves(req.target.Group, req.target.Version) {
		return noSuchResource()
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
	return nil
}

// serves tells whether a version of a group has built-in kinds.
func (t *served) serves(group, version string) bool {
	for _, in := range t.resources {
		if v := in.versions[version]; v != nil && in.Group == group && v.Typed() && !v.Unserved {
			return true
		}
	}
	return false
}

func noSuchResource() error { return generic(http.StatusNotFound, "") }

// generic is a refusal that names no object, as the paths of built-in kinds have
// always answered.
func generic(code int, message string) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0, false)
}

type answerer func(ctx context.Context, w *exchange.Writer, req *request) error

// verbOf returns the handler of a request, nil when its verb is not served.
func (s *Server) verbOf(req *request) answerer {
	if sub := req.sub; sub != nil {
		switch {
		case sub.Backend != nil && sub.Verbs != nil && !slices.Contains(sub.Verbs, req.Verb):
			return nil
		case sub.Backend != nil:
			return s.computed(req, sub.Backend)
		case sub.Action != nil && req.Verb == "create":
			return s.act
		case sub.Action != nil:
			return nil
		case req.Name == "" || sub.Verbs != nil && !slices.Contains(sub.Verbs, req.Verb):
			return nil
		case req.Verb == "get":
			return s.get
		case req.Verb == "update":
			return s.update
		case req.Verb == "patch":
			return s.patch
		}
		return nil
	}
	if req.in.Backend != nil {
		return s.computed(req, req.in.Backend)
	}
	if req.http.Method == http.MethodHead && req.Version.Typed() {
		return nil
	}
	switch req.Verb {
	case "get":
		return s.get
	case "list":
		return s.list
	case "watch":
		return s.watch
	case "create":
		if req.Name != "" && req.Version.Typed() {
			return nil
		}
		return s.create
	case "update":
		if req.Name == "" {
			return nil
		}
		return s.update
	case "patch":
		if req.Name == "" {
			return nil
		}
		return s.patch
	case "delete":
		return s.delete
	case "deletecollection":
		if req.in.Deletion.OneByOne {
			return nil
		}
		return s.deleteCollection
	}
	return nil
}

// fail answers with the Status of an error.
func (s *Server) fail(w *exchange.Writer, req *request, err error) {
	if w.Code != 0 {
		s.options.Log.Error("an answer was cut short", "verb", req.Verb, "path", req.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	status := s.statusOf(req, err)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
	}
	exchange.SendStatus(w, req.http, int(status.Code), status)
}

// statusOf classifies an error.
func (s *Server) statusOf(req *request, err error) *metav1.Status {
	var known apierrors.APIStatus
	var refused *auth.RefusedError
	status := metav1.Status{}
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.As(err, &refused):
		a := &refused.Attributes
		status = apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, refused).ErrStatus
	case errors.Is(err, context.DeadlineExceeded):
		status = apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within the allotted timeout of %s", s.limits.RequestTimeout), 0).ErrStatus
	default:
		if !errors.Is(err, context.Canceled) {
			s.options.Log.Error("a request failed", "verb", req.Verb, "path", req.Path, "error", err)
		}
		status.Message = err.Error()
	}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &status
}
