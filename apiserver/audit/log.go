// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Options of a [Log]. Policy and Out are required.
type Options struct {
	// Policy says what is recorded.
	Policy *Policy
	// Out gets one line for each event, by one call of Write, before the request goes on. The
	// log does not close it.
	Out io.Writer
	// Strict refuses requests of which no event can be written when they come. Otherwise
	// requests go on whatever happens to their events.
	Strict bool
	// Log receives failures to write events. nil: they are discarded.
	Log *slog.Logger
}

// Log writes events. It is safe for concurrent use.
type Log struct {
	options Options
	mu      sync.Mutex // one line at a time
}

// NewLog returns a log.
func NewLog(o Options) (*Log, error) {
	if o.Policy == nil || o.Out == nil {
		return nil, errors.New("audit: Options.Policy and Options.Out are required: see ParsePolicy")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{options: o}, nil
}

// Receive begins the event of a request. Nothing is written before [Event.Decide]. The writer
// and the request that it returns take the places of the given ones: they tell the event
// about the answer, and have it in their context.
func (l *Log) Receive(w http.ResponseWriter, r *http.Request, at time.Time) (http.ResponseWriter, *http.Request, *Event) {
	e := &Event{log: l, request: r, event: auditv1.Event{
		TypeMeta:                 metav1.TypeMeta{Kind: "Event", APIVersion: auditv1.SchemeGroupVersion.String()},
		RequestReceivedTimestamp: metav1.NewMicroTime(at),
	}}
	return watched(w, e), r.WithContext(with(r.Context(), e)), e
}

// write appends an event as one line.
func (l *Log) write(e *auditv1.Event) error {
	line, err := json.Marshal(e)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		_, err = l.options.Out.Write(append(line, '\n'))
	}
	if err != nil {
		l.options.Log.Error("an audit event cannot be written", "auditID", string(e.AuditID), "stage", string(e.Stage), "error", err)
	}
	return err
}
