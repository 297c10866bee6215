// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/watchserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Handler answers requests for resources. It is safe for concurrent use.
type Handler struct {
	registry *registry.Registry
	options  Options
	scale    *registry.Served // the kind that Scale objects are decoded and encoded as
	watches  *watchserver.Server
}

// Options of a [Handler]. All fields are required; a limit of 0 means no limit.
type Options struct {
	Registry *registry.Registry
	// Known reports whether any version of a kind is served, and the bucket of its
	// objects.
	Known func(kind schema.GroupVersionKind) (bucket string, ok bool)
	// Watched returns the metrics of one watch.
	Watched func(r *resource.Request) watchserver.Metrics
	// Jitter returns a duration in [0, limit).
	Jitter func(limit time.Duration) time.Duration
	// Log receives failures that no client sees.
	Log *slog.Logger
	// Audited reports that requests are recorded: their contexts have an event.
	Audited bool

	BodyBytes       int64
	PatchOperations int
	RequestTimeout  time.Duration // named in the message of a request that timed out
	MinWatch        time.Duration
	BookmarkEvery   time.Duration
}

// New returns a handler.
func New(o Options) *Handler {
	return &Handler{
		registry: o.Registry, options: o, scale: newScaleKind(o.Registry),
		watches: watchserver.New(watchserver.Options{Registry: o.Registry, Jitter: o.Jitter, MinWatch: o.MinWatch, BookmarkEvery: o.BookmarkEvery}),
	}
}

// Serve answers a request whose resource is served.
func (h *Handler) Serve(ctx context.Context, w *exchange.Writer, req *Request) error {
	if req.Subresource != "" && req.Sub == nil {
		if req.Version.Typed() {
			return NoSuchResource()
		}
		if text := req.Version.Deprecation; text != "" {
			req.Warn(text)
		}
		return apierrors.NewNotFound(req.groupResource(), req.Name)
	}
	answer := h.verbOf(req)
	if text := req.Version.Deprecation; text != "" && (answer != nil || !req.Version.Typed()) {
		req.Warn(text)
	}
	switch {
	case answer != nil:
		return answer(ctx, w, req)
	case req.Sub == nil && req.Served.Backend != nil && !pathServed(req):
		return NoSuchResource()
	case req.Version.Typed() || req.Served.Backend != nil:
		return Refusal(http.StatusMethodNotAllowed, "")
	case req.Name == "" && (req.Verb == "update" || req.Verb == "patch"):
		return apierrors.NewBadRequest("name must be provided")
	}
	return apierrors.NewMethodNotSupported(req.groupResource(), req.Verb)
}

// pathServed reports whether a backend implements any verb for the path of a request.
func pathServed(req *Request) bool {
	backend := req.Served.Backend
	_, lists := backend.(resource.Lister)
	if req.Info.Name == "" { // req.Name may be set from a field selector; the path decides here
		_, creates := backend.(resource.Creater)
		return lists || creates && !req.allNamespaces()
	}
	_, gets := backend.(resource.Getter)
	_, updates := backend.(resource.Updater)
	_, deletes := backend.(resource.Deleter)
	return gets || updates || deletes
}

// allNamespaces reports whether a request for a namespaced resource names no namespace.
func (r *Request) allNamespaces() bool { return r.Served.Namespaced && r.Namespace == "" }

// preflight reports whether a request is OPTIONS for what passes requests of every verb on to another
// server, which answers it: it has no verb.
func (r *Request) preflight() bool {
	if _, ok := r.Sub.Backend.(resource.Connecter); !ok || r.HTTP.Method != http.MethodOptions {
		return false
	}
	for _, verb := range [...]string{"create", "delete", "get", "patch", "update"} {
		if !slices.Contains(r.Sub.Verbs, verb) {
			return false
		}
	}
	return true
}

type answerer func(ctx context.Context, w *exchange.Writer, req *Request) error

// verbOf returns the handler of a request; nil if its verb is not served.
func (h *Handler) verbOf(req *Request) answerer {
	if sub := req.Sub; sub != nil {
		switch {
		case sub.Backend != nil && sub.Verbs != nil && !slices.Contains(sub.Verbs, req.Verb) && !req.preflight():
			return nil
		case sub.Backend != nil:
			return h.backendVerb(req, sub.Backend)
		case sub.Action != nil && req.Verb == "create":
			return h.action
		case sub.Action != nil:
			return nil
		case req.Name == "" || sub.Verbs != nil && !slices.Contains(sub.Verbs, req.Verb):
			return nil
		case req.Served.Backend != nil && (sub.Scale == nil || req.Verb == "get"):
			return h.backendVerb(req, req.Served.Backend)
		case req.Verb == "get":
			return h.get
		case req.Verb == "update":
			return h.update
		case req.Verb == "patch":
			return h.patch
		}
		return nil
	}
	if req.Version.Typed() && (req.Verb == "create" && (req.Name != "" || req.allNamespaces()) || req.Verb == "deletecollection" && req.allNamespaces()) {
		return nil
	}
	if req.Served.Backend != nil {
		return h.backendVerb(req, req.Served.Backend)
	}
	if req.HTTP.Method == http.MethodHead && req.Version.Typed() {
		return nil
	}
	switch req.Verb {
	case "get":
		return h.get
	case "list":
		return h.list
	case "watch":
		return h.watch
	case "create":
		return h.create
	case "update":
		if req.Name == "" {
			return nil
		}
		return h.update
	case "patch":
		if req.Name == "" {
			return nil
		}
		return h.patch
	case "delete":
		return h.delete
	case "deletecollection":
		if req.Served.Deletion.NoDeleteCollection {
			return nil
		}
		return h.deleteCollection
	}
	return nil
}

// readBody returns the body of a request, bounded by BodyBytes. It is read once and
// kept.
func (h *Handler) readBody(req *Request) (data []byte, err error) {
	if req.body == nil {
		req.body, err = body.Read(req.HTTP, h.options.BodyBytes)
	}
	return req.body, err
}

// decoder returns a decoder of bodies in a version; validation is the fieldValidation
// option of the request.
func (h *Handler) decoder(in *registry.Served, v *resource.Version, validation string) *body.Decoder {
	return &body.Decoder{
		Kind: in.GroupVersionKind(v.Name), Version: v, FieldValidation: effectiveFieldValidation(validation), EquivalentVersions: in.EquivalentVersions, Known: h.options.Known,
		Limit: h.options.BodyBytes,
	}
}

// effectiveFieldValidation returns the fieldValidation directive that applies: Warn by
// default.
func effectiveFieldValidation(asked string) string {
	if asked == "" {
		return metav1.FieldValidationWarn
	}
	return asked
}

// writeOptions are the options that all writes have in common.
func writeOptions(dryRun []string, manager, validation string) registry.WriteOptions {
	return registry.WriteOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: validation}
}

// newOperation prepares a write of the object that a request names.
func (h *Handler) newOperation(req *Request, o registry.WriteOptions) *registry.Operation {
	return h.registry.NewOperation(&req.Request, req.Served, req.Sub, o)
}

// Status returns the Status that answers an error.
func (h *Handler) Status(req *Request, err error) *metav1.Status {
	var known apierrors.APIStatus
	var refused *auth.RefusedError
	status := metav1.Status{}
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.As(err, &refused):
		a := &refused.Attributes
		status = apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, refused).ErrStatus
	case errors.Is(err, storage.ErrNotLeader):
		// What was refused was not written; a client repeats the request.
		status = apierrors.NewServiceUnavailable("this server does not lead any longer, please try again").ErrStatus
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	case errors.Is(err, context.DeadlineExceeded):
		status = apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within the allotted timeout of %s", h.options.RequestTimeout), 0).ErrStatus
	default:
		if !errors.Is(err, context.Canceled) {
			h.options.Log.Error("a request failed", "verb", req.Verb, "path", req.Path, "error", err)
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

// NoSuchResource is the 404 for a path that is not served.
func NoSuchResource() error { return Refusal(http.StatusNotFound, "") }

// Refusal is an error that names no object, as kube-apiserver answers on the paths of
// built-in kinds.
func Refusal(code int, message string) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0, false)
}
