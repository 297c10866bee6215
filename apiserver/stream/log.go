// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Log sends text as it is written, as the log of Pods.
type Log struct {
	// Open returns the log of an object; required. With Follow it is read until the client
	// is gone, which ends ctx; a Read that waits must then return.
	Open func(ctx context.Context, r *resource.Request, o LogOptions) (io.ReadCloser, error)
}

// LogOptions are the parameters of a log, with the names that those of Pods have.
type LogOptions struct {
	// Container that is meant; empty: the client leaves it to the server.
	Container string
	// Follow asks for what is written from now on, too.
	Follow bool
	// Previous asks for the log before the last restart.
	Previous bool
	// Timestamps asks for the time of each line in front of it.
	Timestamps bool
	// Tail is the number of lines at the end that are wanted; negative: all.
	Tail int64
	// Since is the time before which lines are left out; zero: none are.
	Since time.Time
}

// logOptions decodes the parameters of a log; limit is in bytes, 0 for none.
func logOptions(query url.Values) (o LogOptions, limit int64, err error) {
	o = LogOptions{Container: query.Get("container"), Tail: -1}
	for name, into := range map[string]*bool{"follow": &o.Follow, "previous": &o.Previous, "timestamps": &o.Timestamps} {
		if value := query.Get(name); value != "" {
			if *into, err = strconv.ParseBool(value); err != nil {
				return o, 0, fmt.Errorf("parameter %s: %q is neither true nor false", name, value)
			}
		}
	}
	seconds := int64(0)
	for name, into := range map[string]*int64{"tailLines": &o.Tail, "limitBytes": &limit, "sinceSeconds": &seconds} {
		if value := query.Get(name); value != "" {
			if *into, err = strconv.ParseInt(value, 10, 64); err != nil || *into < 0 || *into == 0 && name != "tailLines" {
				return o, 0, fmt.Errorf("parameter %s: %q must be greater than 0", name, value)
			}
		}
	}
	if value := query.Get("sinceTime"); value != "" {
		if seconds > 0 {
			return o, 0, errors.New("at most one of sinceTime or sinceSeconds may be specified")
		}
		if o.Since, err = time.Parse(time.RFC3339, value); err != nil {
			return o, 0, fmt.Errorf("parameter sinceTime: %w", err)
		}
	}
	if seconds > 0 {
		o.Since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	return o, limit, nil
}

// Subresource returns the subresource log: it is read with the verb get.
func (l Log) Subresource() resource.Subresource {
	return resource.Subresource{Name: "log", Verbs: []string{"get"}, Backend: l}
}

// Connect implements [resource.Connecter].
func (l Log) Connect(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	o, limit, err := logOptions(h.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	text, err := l.Open(ctx, r, o)
	if err != nil {
		fail(w, err)
		return
	}
	defer func() { _ = text.Close() }() // it was only read
	var from io.Reader = text
	if limit > 0 {
		from = io.LimitReader(text, limit)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush() // a client that is gone fails the first write
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, failed := w.Write(buffer[:n]); failed != nil {
				return
			}
			_ = control.Flush() // as above
		}
		switch {
		case errors.Is(err, io.EOF) || ctx.Err() != nil:
			return
		case err != nil:
			panic(http.ErrAbortHandler) // the client must not take the text for complete
		}
	}
}

// fail answers with the Status of an error.
func fail(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	refuse(w, int(status.Code), status.Reason, status.Message)
}
