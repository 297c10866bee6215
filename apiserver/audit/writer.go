// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"net"
	"net/http"
)

// writer tells an event about the code of the answer.
type writer struct {
	http.ResponseWriter
	event *Event
}

// watched returns a writer whose answers the event sees. Its connection can be taken over if
// that of the given one can.
func watched(w http.ResponseWriter, e *Event) http.ResponseWriter {
	if h, ok := w.(http.Hijacker); ok {
		return &hijackable{writer{w, e}, h}
	}
	return &writer{w, e}
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		w.event.answered(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(p []byte) (int, error) {
	w.event.answered(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the underlying writer, for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type hijackable struct {
	writer
	hijacker http.Hijacker
}

// Hijack implements [http.Hijacker].
func (w *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.event.answered(http.StatusSwitchingProtocols)
	return w.hijacker.Hijack()
}
