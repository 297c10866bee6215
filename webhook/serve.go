// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook/internal/jsonpatch"
)

const (
	// maxAdmission bounds the body of an admission request, in bytes: two objects of the
	// largest size, and what is around them.
	maxAdmission = 7 << 20
	// maxConversion bounds the body of a conversion request: a whole list.
	maxConversion = 128 << 20
	// maxChanged is how many changed fields a record of the flight recorder names.
	maxChanged = 4
)

// ServeHTTP implements http.Handler: it answers the API server, by way of the network
// or in process.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.handlers[r.URL.Path]
	s.mu.Unlock()
	if s.opts.Disabled {
		http.Error(w, "the webhooks of this operator are disabled (ENABLE_WEBHOOKS=false): remove its webhook configurations, or enable them", http.StatusNotFound)
		return
	}
	if handler == nil {
		if s.opts.OnMistake != nil {
			s.opts.OnMistake(&NotServedError{Path: r.URL.Path, Served: s.Paths()})
		}
		http.Error(w, fmt.Sprintf("no webhook is served at %s; the operator serves %s", r.URL.Path, strings.Join(s.Paths(), ", ")), http.StatusNotFound)
		return
	}
	began := time.Now()
	status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	if m := s.opts.Metrics; m != nil {
		m.WebhookBegan(r.URL.Path)
		defer func() { m.WebhookEnded(r.URL.Path, status.status, time.Since(began)) }()
	}
	ctx, cancel := deadlineOf(r)
	defer cancel()
	handler.ServeHTTP(status, r.WithContext(ctx))
	if ctx.Err() != nil && r.Context().Err() == nil {
		s.opts.Log.Warn("a webhook answered after the API server had stopped waiting", "webhook", r.URL.Path, "took", time.Since(began).String(),
			"advice", "make it faster, end its work with its context, or raise timeoutSeconds of its configuration (at most 30)")
	}
}

// deadlineOf is the context of a request, until the API server stops waiting: it says
// so in the parameter "timeout".
func deadlineOf(r *http.Request) (context.Context, context.CancelFunc) {
	if timeout, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && timeout > 0 {
		return context.WithTimeout(r.Context(), timeout)
	}
	return context.WithCancel(r.Context())
}

// statusWriter keeps the status for the metrics.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// requestError is an HTTP answer to a request that is no review.
type requestError struct {
	status  int
	message string
}

// Error implements error.
func (e *requestError) Error() string { return e.message }

// bounds of the reviews of one kind.
type bounds struct {
	most     int64         // bytes of a body
	within   time.Duration // that a client may take to send it
	underWay *budget
}

// read reads a review from the body of a request. Its bytes count as under way until give is
// called, once it has been answered.
func (b bounds) read(w http.ResponseWriter, r *http.Request, review any) (give func(), err error) {
	if err := acceptable(r); err != nil {
		return nil, err
	}
	size := r.ContentLength
	switch {
	case size > b.most:
		return nil, b.tooLarge()
	case size < 0:
		size = b.most
	}
	if give, err = b.underWay.take(r.Context(), clientOf(r), size); err != nil {
		return nil, err
	}
	// It is for the body alone: net/http ends it with that. A request in process, whose body is
	// there already, has none.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.within))
	if err := b.decode(w, r, review); err != nil {
		give()
		return nil, err
	}
	return give, nil
}

func (b bounds) tooLarge() error {
	return &requestError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review has more than %d bytes", b.most)}
}

// acceptable refuses what is no review.
func acceptable(r *http.Request) error {
	if r.Method != http.MethodPost {
		return &requestError{http.StatusMethodNotAllowed, "webhooks are called by POST, by an API server"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return &requestError{http.StatusUnsupportedMediaType, fmt.Sprintf("the content type is %q, and should be application/json", r.Header.Get("Content-Type"))}
	}
	return nil
}

func (b bounds) decode(w http.ResponseWriter, r *http.Request, review any) error {
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 {
		body.Grow(int(min(n, 1<<20)) + bytes.MinRead) // more once it has come
	}
	if _, err := io.Copy(&body, http.MaxBytesReader(w, r.Body, b.most)); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return b.tooLarge()
		}
		return &requestError{http.StatusBadRequest, fmt.Sprintf("read the review: %v", err)}
	}
	if err := codec.UnmarshalJSON(body.Bytes(), review); err != nil {
		return &requestError{http.StatusBadRequest, fmt.Sprintf("read the review: %v", err)}
	}
	return nil
}

func expect(got metav1.TypeMeta, apiVersion, kind string) error {
	if got.APIVersion != apiVersion || got.Kind != kind {
		return &requestError{http.StatusBadRequest, fmt.Sprintf("this webhook answers %s %s, and was sent a %s %s: correct the versions of reviews in its configuration", apiVersion, kind, got.APIVersion, got.Kind)}
	}
	return nil
}

// refuse answers a request that is no review.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var bad *requestError
	if errors.As(err, &bad) {
		status = bad.status
	}
	s.opts.Log.Warn("a webhook was sent what it cannot read", "webhook", r.URL.Path, "error", err)
	http.Error(w, err.Error(), status)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, review any) {
	out, err := json.Marshal(review)
	if err != nil {
		s.refuse(w, r, fmt.Errorf("write the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out)
}

// admission serves a [Handler].
type admission struct {
	*Server
	path    string
	handler Handler
}

// ServeHTTP implements http.Handler.
func (a admission) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	give, err := a.admissions.read(w, r, &review)
	if err == nil {
		defer give()
		err = expect(review.TypeMeta, "admission.k8s.io/v1", "AdmissionReview")
	}
	if err == nil && review.Request == nil {
		err = &requestError{http.StatusBadRequest, "the AdmissionReview has no request"}
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	request := &Request{*review.Request}
	response := a.respond(r.Context(), request)
	out := &admissionv1.AdmissionResponse{
		UID: request.UID, Allowed: response.Allowed, Result: response.Status,
		Warnings: response.Warnings, AuditAnnotations: response.AuditAnnotations,
	}
	if len(response.Patch) > 0 {
		if out.Patch, err = json.Marshal(response.Patch); err != nil {
			a.refuse(w, r, fmt.Errorf("write the patch: %w", err))
			return
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		out.PatchType = &jsonPatch
	}
	a.answer(w, r, &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: out})
}

// respond calls the handler and records what it did.
func (a admission) respond(ctx context.Context, r *Request) Response {
	object := trace.Object{Group: r.Kind.Group, Kind: r.Kind.Kind, Namespace: r.Namespace, Name: r.Name}
	began := time.Now()
	var record trace.Active
	a.opts.Trace.Begin(&record, trace.Start{Controller: a.path, Object: object, Request: describe(r, object), Began: began})
	ctx = trace.NewContext(NewContext(ctx, r), &record)
	if a.opts.Trace != nil {
		ctx = client.WithObserver(ctx, func(_ context.Context, call *client.Call) { note(&record, call) })
	}
	if a.opts.Context != nil {
		ctx = a.opts.Context(ctx)
	}

	response, panicked := a.call(ctx, r)
	if len(response.Patch) > 0 {
		record.Note(trace.Access{Verb: trace.Patch, Object: object, Subresource: r.SubResource, Changed: jsonpatch.Fields(response.Patch, maxChanged)})
	}
	end := trace.End{Outcome: trace.Allowed, Took: time.Since(began)}
	if !response.Allowed {
		if response.Status == nil {
			response.Status = Denied("the webhook gives no reason").Status
		}
		end.Outcome, end.Err = trace.Denied, errors.New(response.Status.Message)
		if object.Group == "" && object.Kind == "Secret" {
			end.Err = errors.New("the reason is withheld because it concerns a Secret")
		}
		switch {
		case panicked:
			end.Outcome = trace.Panicked
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			end.Outcome = trace.TimedOut
		}
	}
	record.End(end)
	return response
}

// note records a call of the handler to the API server or the cache, as the records of
// reconciles have theirs.
func note(record *trace.Active, call *client.Call) {
	verb := trace.VerbOf(string(call.Verb))
	if verb == 0 {
		return
	}
	access := trace.Access{
		Verb:        verb,
		Object:      trace.Object{Group: call.GVK.Group, Kind: call.GVK.Kind, Namespace: call.Key.Namespace, Name: call.Key.Name},
		Subresource: call.SubResource, Revision: call.ResourceVersion, Items: call.Items, Cached: call.Origin != client.OriginServer,
	}
	switch {
	case verb.Reads() && apierrors.IsNotFound(call.Err):
		access.Absent = true
	case call.Err != nil:
		access.Error = call.Err.Error()
	}
	record.Note(access)
}

// call calls the handler; a panic denies the request.
func (a admission) call(ctx context.Context, r *Request) (response Response, panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			a.panicked(false, a.path, v)
			response, panicked = failed(http.StatusInternalServerError, fmt.Errorf("the webhook %s panicked: %v; the log of the operator has the stack", a.path, v)), true
		}
	}()
	return a.handler.Handle(ctx, r), false
}

func (s *Server) panicked(conversion bool, path string, v any) {
	if s.opts.Metrics != nil {
		s.opts.Metrics.WebhookPanicked(conversion)
	}
	s.opts.Log.Error("a webhook panicked", "webhook", path, "panic", v, "stack", string(debug.Stack()))
}

// describe is a request in words: "CREATE CronTab default/mine by alice".
func describe(r *Request, object trace.Object) string {
	what := object.String()
	if r.SubResource != "" {
		what += "/" + r.SubResource
	}
	text := fmt.Sprintf("%s %s by %s", r.Operation, what, r.UserInfo.Username)
	if r.IsDryRun() {
		text += " (dry run)"
	}
	return text
}
