// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Event is what is recorded of one request. Its methods are safe for concurrent use, and do
// nothing on nil, and on a request that the policy leaves out.
type Event struct {
	log     *Log
	request *http.Request // as it came

	mu    sync.Mutex
	event auditv1.Event
	// verdict is that of the policy; the zero value before [Event.Decide].
	verdict verdict
	phase   phase
	// long reports that the beginning of the answer is a stage of its own; began that it was.
	long, began bool
}

// phase of an event.
type phase int

const (
	received phase = iota // the policy has not been asked
	open
	refused // the user is not known: the answer is the only stage
	closed
)

type eventKey struct{}

func with(ctx context.Context, e *Event) context.Context {
	return context.WithValue(ctx, eventKey{}, e)
}

// From returns the event of the request that a context belongs to, nil if there is none.
func From(ctx context.Context) *Event {
	e, _ := ctx.Value(eventKey{}).(*Event)
	return e
}

// SetID sets the ID of the request.
func (e *Event) SetID(id string) {
	if e != nil {
		e.event.AuditID = types.UID(id)
	}
}

// Decide asks the policy about a request whose user is known, and writes that it came. long
// reports that the request lasts, as a watch does. An error is the answer to the request.
func (e *Event) Decide(a *auth.Attributes, long bool) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judge(a) {
		e.phase, e.long = open, long
		if err := e.write(auditv1.StageRequestReceived); err != nil && e.log.options.Strict {
			e.phase = closed
			return apierrors.NewInternalError(errors.New("failed to store audit event"))
		}
	}
	return nil
}

// Refuse is called in place of [Event.Decide] for a request with credentials that are not
// valid, or without the credentials that it needs.
func (e *Event) Refuse(a *auth.Attributes) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judge(a) {
		e.phase, e.long = refused, true
	}
}

// judge asks the policy, and notes what it is asked about. It reports whether the request is
// recorded. The event is locked.
func (e *Event) judge(a *auth.Attributes) bool {
	if e.phase != received {
		return false
	}
	e.verdict = e.log.options.Policy.judge(a)
	if e.verdict.level == auditv1.LevelNone {
		e.phase = closed
		return false
	}
	v, r := &e.event, e.request
	v.Level, v.Verb, v.RequestURI = e.verdict.level, a.Verb, r.URL.RequestURI()
	v.UserAgent = r.UserAgent()
	if longest := 1024; len(v.UserAgent) > longest {
		v.UserAgent = v.UserAgent[:longest] + "...TRUNCATED"
	}
	for _, ip := range utilnet.SourceIPs(r) {
		v.SourceIPs = append(v.SourceIPs, ip.String())
	}
	v.User = a.User.Info()
	if a.ResourceRequest {
		v.ObjectRef = &auditv1.ObjectReference{
			APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource,
			Namespace: a.Namespace, Name: a.Name,
		}
	}
	return true
}

// Impersonates notes the user that the request goes on as. The constraint is the verb that
// allows it, where that is not "impersonate".
func (e *Event) Impersonates(u *auth.User, constraint string) {
	e.change(func(v *auditv1.Event) {
		info := u.Info()
		v.ImpersonatedUser = &info
		if constraint != "" {
			v.AuthenticationMetadata = &auditv1.AuthenticationMetadata{ImpersonationConstraint: constraint}
		}
	})
}

// Keys of the annotations of authorization.
const (
	decisionKey = "authorization.k8s.io/decision"
	reasonKey   = "authorization.k8s.io/reason"
)

// Authorized notes whether the request may do what it asks for, and why.
func (e *Event) Authorized(d auth.Decision, reason string, err error) {
	switch {
	case e == nil:
		return
	case d == auth.Allow:
		e.Annotate(decisionKey, "allow")
	case err != nil:
		reason = "internal error"
	default:
		e.Annotate(decisionKey, "forbid")
	}
	e.Annotate(reasonKey, reason)
}

// Annotate adds an annotation. The first value of a key stays.
func (e *Event) Annotate(key, value string) {
	e.change(func(v *auditv1.Event) {
		if _, there := v.Annotations[key]; there {
			return
		}
		if v.Annotations == nil {
			v.Annotations = map[string]string{}
		}
		v.Annotations[key] = value
	})
}

// change edits the event of a request that is recorded, or may be.
func (e *Event) change(edit func(*auditv1.Event)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase != closed {
		edit(&e.event)
	}
}

// WantsRequest reports whether the object that the client has sent is recorded.
func (e *Event) WantsRequest() bool {
	return e.wants(auditv1.LevelRequest, auditv1.LevelRequestResponse)
}

// WantsResponse reports whether the object that the client gets is recorded.
func (e *Event) WantsResponse() bool { return e.wants(auditv1.LevelRequestResponse) }

func (e *Event) wants(levels ...auditv1.Level) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase != closed && slices.Contains(levels, e.verdict.level)
}

// Names completes the reference to the object by what the client has sent.
func (e *Event) Names(obj metav1.Object) {
	e.change(func(v *auditv1.Event) {
		ref := v.ObjectRef
		if ref == nil {
			return
		}
		for field, value := range map[*string]string{
			&ref.Namespace: obj.GetNamespace(), &ref.Name: obj.GetName(),
			(*string)(&ref.UID): string(obj.GetUID()), &ref.ResourceVersion: obj.GetResourceVersion(),
		} {
			if *field == "" {
				*field = value
			}
		}
	})
}

// Request notes what the client has sent, as JSON.
func (e *Event) Request(object []byte) {
	if e.WantsRequest() {
		e.change(func(v *auditv1.Event) { v.RequestObject = e.object(object) })
	}
}

// RequestedObject notes the object that the client has sent.
func (e *Event) RequestedObject(obj resource.Object) {
	if e == nil {
		return
	}
	e.Names(obj)
	e.AppliedObject(obj)
}

// AppliedObject notes a configuration that the client applies.
func (e *Event) AppliedObject(obj resource.Object) {
	if !e.WantsRequest() {
		return
	}
	if text, err := resource.EncodeObject(obj); err == nil { // it was decoded from such a text
		e.Request(text)
	}
}

// RequestOptions notes the options that are the body of a deletion.
func (e *Event) RequestOptions(o *metav1.DeleteOptions) {
	if !e.WantsRequest() {
		return
	}
	sent := *o
	if sent.Kind == "" {
		sent.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "meta.k8s.io/v1"}
	}
	if text, err := json.Marshal(&sent); err == nil { // options have nothing that cannot be encoded
		e.Request(text)
	}
}

// Response notes what the client gets, as JSON.
func (e *Event) Response(object []byte) {
	if e.WantsResponse() {
		e.change(func(v *auditv1.Event) { v.ResponseObject = e.object(object) })
	}
}

// object is a copy of an object, without managed fields if the policy says so. The event is
// locked.
func (e *Event) object(text []byte) *runtime.Unknown {
	if e.verdict.omitManagedFields {
		text = withoutManagedFields(text)
	}
	return &runtime.Unknown{Raw: slices.Clone(text), ContentType: runtime.ContentTypeJSON}
}

// Status notes the Status that the client gets.
func (e *Event) Status(s *metav1.Status) {
	e.change(func(v *auditv1.Event) {
		v.ResponseStatus = &metav1.Status{Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code}
	})
	if !e.WantsResponse() {
		return
	}
	object := *s
	object.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if text, err := json.Marshal(&object); err == nil { // a Status has nothing that cannot be encoded
		e.Response(text)
	}
}

// answered notes that the answer begins.
func (e *Event) answered(code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began || e.phase != open && e.phase != refused {
		return
	}
	e.began = true
	v := &e.event
	if v.ResponseStatus == nil {
		v.ResponseStatus = &metav1.Status{}
	}
	v.ResponseStatus.Code = int32(code) // a code of HTTP
	if e.long {
		_ = e.write(auditv1.StageResponseStarted) // logged
	}
	if e.phase == refused {
		e.phase = closed
	}
}

// Complete writes that the request has ended.
func (e *Event) Complete() {
	e.end(auditv1.StageResponseComplete, func(v *auditv1.Event) {
		if v.ResponseStatus == nil {
			v.ResponseStatus = &metav1.Status{Status: metav1.StatusSuccess, Message: "Connection closed early", Code: http.StatusOK}
			if e.long {
				_ = e.write(auditv1.StageResponseStarted) // logged
			}
		}
	})
}

// Panicked writes that the handler of the request has panicked.
func (e *Event) Panicked(value any) {
	e.end(auditv1.StagePanic, func(v *auditv1.Event) {
		v.ResponseStatus = &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("APIServer panic'd: %v", value), Code: http.StatusInternalServerError,
		}
	})
}

// end writes the last stage.
func (e *Event) end(last auditv1.Stage, edit func(*auditv1.Event)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == open {
		edit(&e.event)
		_ = e.write(last) // logged
	}
	e.phase = closed
}

// write writes a stage, unless the policy leaves it out. The event is locked.
func (e *Event) write(stage auditv1.Stage) error {
	v := &e.event
	v.Stage, v.StageTimestamp = stage, v.RequestReceivedTimestamp
	if stage != auditv1.StageRequestReceived {
		v.StageTimestamp = metav1.NewMicroTime(time.Now())
	}
	if slices.Contains(e.verdict.omitStages, stage) {
		return nil
	}
	return e.log.write(v)
}
