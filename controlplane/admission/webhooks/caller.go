// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// Poster sends a review to a webhook; [webhookclient.Client] is one.
type Poster interface {
	Post(ctx context.Context, t webhookclient.Target, review []byte) ([]byte, error)
}

// caller calls hooks for one plugin. It is safe for concurrent use.
type caller struct {
	// step as the metrics name it: "admit" or "validating".
	step    string
	client  Poster
	newUID  func() types.UID
	log     *slog.Logger
	metrics *metrics
	answers *decoder
}

// refusalError is the status with which a webhook has refused a request.
type refusalError struct{ status *apierrors.StatusError }

func (e *refusalError) Error() string { return e.status.Error() }

// Unwrap gives access to the status.
func (e *refusalError) Unwrap() error { return e.status }

// call sends a request to a hook. It returns the response of a hook that allows the
// request, a *[callError], a *[refusalError], or an API status.
func (c *caller) call(ctx context.Context, h *hook, q *match.Request, as match.Invocation, f *form) (*admissionv1.AdmissionResponse, error) {
	if q.DryRun {
		switch {
		case h.effects == nil:
			return nil, &callError{h.name, errors.New("Webhook SideEffects is nil"), http.StatusBadRequest} // as kube-apiserver writes it
		case *h.effects != v1.SideEffectClassNone && *h.effects != v1.SideEffectClassNoneOnDryRun:
			return nil, webhookerrors.NewDryRunUnsupportedErr(h.name)
		}
	}
	if h.review == "" {
		return nil, &callError{h.name, errors.New("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"), http.StatusBadRequest}
	}
	uid := c.newUID()
	review, err := h.newReview(uid, q, as, f)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	target := h.target
	target.Timeout = h.timeoutWithin(ctx)
	data, err := c.client.Post(ctx, target, review)
	if err != nil {
		return nil, &callError{h.name, fmt.Errorf("failed to call webhook: %w", err), codeOf(err)}
	}
	r, err := c.answers.read(h, uid, c.step == stepAdmit, data)
	if err != nil {
		return nil, &callError{h.name, err, codeOf(err)}
	}
	for key, value := range r.AuditAnnotations {
		q.Annotate(ctx, c.log, h.name+"/"+key, value)
	}
	for _, w := range r.Warnings {
		q.Warn(w)
	}
	if !r.Allowed {
		return nil, &refusalError{webhookerrors.ToStatusErr(h.name, r.Result)}
	}
	return r, nil
}

// timeoutWithin returns how long a hook may take: as its configuration says, but no longer
// than the request, in whole seconds.
func (h *hook) timeoutWithin(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return h.timeout
	}
	left := (time.Until(deadline) + time.Second - 1).Truncate(time.Second)
	if h.timeout == 0 || left < h.timeout {
		return max(left, time.Second)
	}
	return h.timeout
}

// settle counts a call and applies the failure policy: it returns the error that the
// request is answered with, nil if it goes on. The call is named in audit annotations by its place.
func (c *caller) settle(ctx context.Context, h *hook, q *match.Request, place string, begun time.Time, err error) error {
	c.metrics.observe(h, c.step, string(q.Operation), time.Since(begun), err)
	if err == nil {
		return nil
	}
	var refusal *refusalError
	if errors.As(err, &refusal) {
		return refusal.status
	}
	var failed *callError
	if !errors.As(err, &failed) {
		return err
	}
	if !h.ignore {
		if ctx.Err() != nil { // it is the request that has timed out, or has gone
			return errAllotted()
		}
		return apierrors.NewInternalError(failed)
	}
	if !errors.Is(failed.reason, context.Canceled) {
		c.metrics.failOpen.WithLabelValues(h.name, c.step).Inc()
		q.Note(ctx, "failed-open."+place, h.name)
		c.log.Warn("an admission webhook cannot be called, and its failure policy is Ignore", "webhook", h.name, "configuration", h.configuration, "err", failed)
	}
	if ctx.Err() != nil {
		return errRequestTimeout()
	}
	return nil
}

func errAllotted() error {
	return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
}

func errRequestTimeout() error {
	return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
}
