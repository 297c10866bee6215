// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// mostAbout is how many records one answer about an object has, the newest: an answer of tens
// of MiB.
const mostAbout = 20_000

// mostNames is how many objects one answer is about.
const mostNames = 200

// Records are those that an operator can show.
type Records struct {
	// Recorder has the newest in memory.
	Recorder *trace.Recorder
	// Dir has the files of a recording.Writer; empty: there are none.
	Dir string
	// Log takes errors of single files, beside which the others are shown. Required with Dir.
	Log *slog.Logger

	most int // mostAbout, unless a test has another bound
}

// Keep begins to write the records to files, if there is a directory for them. The context
// bounds the start alone.
func (r *Records) Keep(ctx context.Context) (stop func() error, err error) {
	if r.Dir == "" {
		return func() error { return nil }, nil
	}
	writer := recording.NewWriter(r.Recorder, recording.Options{Dir: r.Dir, Log: r.Log})
	return writer.Stop, writer.Start(ctx)
}

// places is what the header Steer-Records says.
func (r *Records) places() string {
	if r.Dir == "" {
		return "memory"
	}
	return "memory, files"
}

// about answers with the records about objects of one kind, the oldest about an object first.
// What is left out for the length of the answer is counted in the header Steer-Left-Out.
func (r *Records) about(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	names := query["name"]
	if query.Get("kind") == "" || len(names) == 0 || slices.Contains(names, "") || len(names) > mostNames {
		http.Error(w, fmt.Sprintf("name an object: kind=KIND&name=NAME, with group=GROUP unless it is in the core group, and namespace=NAMESPACE if it has one; name= may be repeated, %d times at most", mostNames), http.StatusBadRequest)
		return
	}
	objects := make([]trace.Object, len(names))
	for i, name := range names {
		objects[i] = trace.Object{Group: query.Get("group"), Kind: query.Get("kind"), Namespace: query.Get("namespace"), Name: name}
	}
	var files *recording.Reader
	if r.Dir != "" {
		var err error
		if files, err = recording.Open(r.Dir); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	// Records come oldest first, and may be more than fit into memory: they are counted, and
	// read again.
	each := max(cmp.Or(r.most, mostAbout)/len(objects), 1)
	skip, left := make([]int, len(objects)), 0
	for i, object := range objects {
		all := 0
		for range r.of(files, object, false) {
			all++
		}
		skip[i] = max(all-each, 0)
		left += skip[i]
	}
	w.Header().Set("Steer-Left-Out", strconv.Itoa(left))
	_ = trace.WriteJSON(w, func(yield func(trace.Record) bool) { // it fails when the reader has gone
		sent := map[trace.ID]bool{} // one record may be about several
		for i, object := range objects {
			n := 0
			for record := range r.of(files, object, true) {
				if n++; n <= skip[i] || sent[record.ID] {
					continue
				}
				if sent[record.ID] = true; !yield(record) {
					return
				}
			}
		}
	})
}

// of yields the records about an object, each once: files, if there are any, have all but
// the newest, and memory those. With tell, it logs files that cannot be read.
func (r *Records) of(files *recording.Reader, object trace.Object, tell bool) iter.Seq[trace.Record] {
	return func(yield func(trace.Record) bool) {
		known := map[trace.ID]bool{}
		if files != nil {
			for record, err := range files.Of(object) {
				if err != nil {
					if tell {
						r.Log.Warn("records in files are left out", "error", err)
					}
					continue
				}
				known[record.ID] = true
				if !yield(record) {
					return
				}
			}
		}
		for record := range r.Recorder.Records() {
			if !known[record.ID] && recording.About(&record, object) && !yield(record) {
				return
			}
		}
	}
}
