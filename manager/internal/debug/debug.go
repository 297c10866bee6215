// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debug serves what shows the inside of a running operator.
package debug

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/steer-dev/steer/trace"
)

// mostQueued is how many requests of each state are listed of a queue.
const mostQueued = 200

// Handler serves what shows the inside of a running operator:
// profiles below /debug/pprof/, and the flight recorder at /debug/reconciles as
// JSON lines, with ?follow as they come until stopping ends, and with ?running those that
// have not ended, each with its stack. With ?queued it shows a trace.Queued of each controller.
// With ?kind= and name=, group= and namespace= it shows the records about an object, those in
// files included.
func Handler(stopping context.Context, records Records, queued func(most int) []trace.Queued) http.Handler {
	recorder := records.Recorder
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/reconciles", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		w.Header().Set("Steer-Records", records.places())
		// A write fails when the reader has gone: its error is not needed.
		if r.URL.Query().Has("running") {
			_ = trace.WriteJSON(w, slices.Values(recorder.Running()))
			return
		}
		if r.URL.Query().Has("queued") {
			lines := json.NewEncoder(w)
			for _, q := range queued(mostQueued) {
				_ = lines.Encode(q)
			}
			return
		}
		if r.URL.Query().Has("kind") || r.URL.Query().Has("name") {
			records.about(w, r)
			return
		}
		if !r.URL.Query().Has("follow") {
			_ = trace.WriteJSON(w, recorder.Records())
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		// Who follows from here on misses nothing: the position is taken first.
		records := recorder.Follow(ctx)
		out := flusher{w, http.NewResponseController(w)}
		if out.Flush() == nil {
			_ = trace.WriteJSON(out, records)
		}
	})
	return mux
}

// flusher sends every line at once.
type flusher struct {
	http.ResponseWriter
	*http.ResponseController
}

// Write implements io.Writer.
func (f flusher) Write(line []byte) (int, error) {
	n, err := f.ResponseWriter.Write(line)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}
