// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

const (
	// patience bounds one request, maxAnswer the bytes of what is read from an operator.
	patience  = 30 * time.Second
	maxAnswer = 256 << 20
	// maxLine bounds one record in a file or of an operator.
	maxLine = 1 << 20
)

// records are those of operators.
type records struct {
	dirs []*recording.Reader
	all  []trace.Record // of files and running operators
	none bool
	warn func(error)
	// known are the answers of earlier calls: an answer asks for an object again and again.
	known map[trace.Object][]trace.Record
	// running are the operators that have records in files, too. They are asked for each
	// object, since files have more than an answer may have.
	running []*operator
	// kept is what those that run have answered about an object.
	kept map[trace.Object][]trace.Record
	ctx  func() (context.Context, context.CancelFunc) // of each question to them
}

// close closes the connections to operators.
func (r *records) close() {
	for _, o := range r.running {
		o.close()
	}
}

// add takes the records of an operator over that runs.
func (r *records) add(ctx context.Context, o *operator) error {
	found, err := o.ask(ctx)
	if err != nil {
		o.close()
		return err
	}
	r.all = append(r.all, found...)
	if !o.files {
		o.close()
		return nil
	}
	r.running = append(r.running, o)
	return nil
}

// openFile opens what a failed test has left.
func openFile(name string) (versions.Source, *records, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	file, err := versions.Read(in)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	return file, &records{all: file.Records, known: map[trace.Object][]trace.Record{}}, nil
}

// openRecords opens directories of --record-dir, files of JSON lines, the addresses of
// running operators, and those of operators in Pods.
func openRecords(ctx context.Context, places []string, in *pods, warn func(error)) (*records, error) {
	out := &records{none: len(places) == 0, warn: warn, known: map[trace.Object][]trace.Record{}}
	out.ctx = func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, patience) }
	for _, place := range places {
		if err := out.open(place, in); err != nil {
			out.close()
			return nil, err
		}
	}
	return out, nil
}

// open opens one of them.
func (r *records) open(place string, in *pods) error {
	ctx, cancel := r.ctx()
	defer cancel()
	if strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://") {
		if !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(place, "https://"), "http://"), "/") {
			place += reconciles
		}
		return r.add(ctx, &operator{client: http.DefaultClient, url: place, name: place, close: func() {}})
	}
	info, err := os.Stat(place)
	switch {
	case err != nil && isPod(place):
		return in.each(ctx, place, func(o *operator) error { return r.add(ctx, o) })
	case err != nil:
		return fmt.Errorf("records: %w", err)
	case info.IsDir():
		reader, err := recording.Open(place)
		if err != nil {
			return err
		}
		r.dirs = append(r.dirs, reader)
		return nil
	}
	file, err := os.Open(place)
	if err != nil {
		return err
	}
	defer file.Close() // it was read
	found, err := read(file, place)
	r.all = append(r.all, found...)
	return err
}

// read reads JSON lines.
func read(from io.Reader, name string) (found []trace.Record, err error) {
	lines := bufio.NewScanner(io.LimitReader(from, maxAnswer))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var record trace.Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("records: line %d of %s is no record: %w", n, name, err)
		}
		found = append(found, record)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("records: %s: %w", name, err)
	}
	return found, nil
}

// about returns the records about an object as they were at the first call.
func (r *records) about(object trace.Object) []trace.Record {
	found, ok := r.known[object]
	if !ok {
		found = r.find(object)
		r.known[object] = found
	}
	return found
}

// find looks an object up. What several sources have is there once.
func (r *records) find(object trace.Object) (found []trace.Record) {
	known := map[trace.ID]bool{}
	add := func(record trace.Record) {
		if !known[record.ID] {
			found = append(found, record)
		}
		known[record.ID] = record.ID != (trace.ID{})
	}
	for _, dir := range r.dirs {
		for record, err := range dir.Of(object) {
			if err != nil {
				r.warn(err)
				continue
			}
			add(record)
		}
	}
	if _, asked := r.kept[object]; !asked {
		r.ask([]trace.Object{object})
	}
	for _, record := range r.kept[object] {
		add(record)
	}
	for i := range r.all {
		if recording.About(&r.all[i], object) {
			add(r.all[i])
		}
	}
	return found
}

// mostNames is how many objects an operator is asked for at once.
const mostNames = 100

// ahead asks the operators that run for the records about objects that are asked for next,
// those of one kind at once.
func (r *records) ahead(objects []trace.Object) {
	if len(r.running) == 0 {
		return
	}
	kinds := map[trace.Object][]trace.Object{}
	for _, o := range objects {
		if _, asked := r.kept[o]; !asked {
			kind := trace.Object{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace}
			kinds[kind] = append(kinds[kind], o)
		}
	}
	for _, of := range kinds {
		for some := range slices.Chunk(of, mostNames) {
			r.ask(some)
		}
	}
}

// ask asks the operators that run for the records about objects of one kind.
func (r *records) ask(objects []trace.Object) {
	if r.kept == nil {
		r.kept = map[trace.Object][]trace.Record{}
	}
	for _, o := range objects {
		r.kept[o] = nil
	}
	r.running = slices.DeleteFunc(r.running, func(o *operator) bool {
		ctx, cancel := r.ctx()
		found, err := o.ask(ctx, objects...)
		cancel()
		if err != nil {
			r.warn(err)
		}
		for i := range found {
			for _, object := range objects {
				if recording.About(&found[i], object) {
					r.kept[object] = append(r.kept[object], found[i])
				}
			}
		}
		gone := err != nil && found == nil // it is not waited for again
		if gone {
			o.close()
		}
		return gone
	})
}

// errArguments says how objects are named.
var errArguments = errors.New("name one object, as deploy/web or deployment web")
