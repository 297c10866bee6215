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
	for _, place := range places {
		if strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://") {
			if err := out.follow(ctx, place); err != nil {
				return nil, err
			}
			continue
		}
		info, err := os.Stat(place)
		switch {
		case err != nil && isPod(place):
			limited, cancel := context.WithTimeout(ctx, patience)
			err := in.records(limited, place, out.read)
			cancel()
			if err != nil {
				return nil, err
			}
		case err != nil:
			return nil, fmt.Errorf("records: %w", err)
		case info.IsDir():
			reader, err := recording.Open(place)
			if err != nil {
				return nil, err
			}
			out.dirs = append(out.dirs, reader)
		default:
			file, err := os.Open(place)
			if err != nil {
				return nil, err
			}
			err = out.read(file, place)
			_ = file.Close() // it was read
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// follow reads what a running operator has.
func (r *records) follow(ctx context.Context, address string) error {
	if !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"), "/") {
		address += "/debug/reconciles"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("records: %w: an operator serves them with --pprof-bind-address", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("records: %s: %s", address, answer.Status)
	}
	return r.read(answer.Body, address)
}

// read reads JSON lines.
func (r *records) read(from io.Reader, name string) error {
	lines := bufio.NewScanner(io.LimitReader(from, maxAnswer))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var record trace.Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return fmt.Errorf("records: line %d of %s is no record: %w", n, name, err)
		}
		r.all = append(r.all, record)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("records: %s: %w", name, err)
	}
	return nil
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
	for i := range r.all {
		if recording.About(&r.all[i], object) {
			add(r.all[i])
		}
	}
	return found
}

// errArguments says how objects are named.
var errArguments = errors.New("name one object, as deploy/web or deployment web")
