// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/trace"
)

const (
	// format names files, and formatVersion is that of their lines.
	format        = "steer.dev/versions"
	formatVersion = 1
	// maxFile and maxLine bound what is read, in bytes.
	maxFile = 256 << 20
	maxLine = 4 << 20
)

// File is what a control plane and an operator have done, as lines of JSON: a head, what the
// server serves, versions, notes, records, and an end, without which the file was cut. It
// implements [Source].
type File struct {
	resources

	// From is the oldest revision at which the file has all objects.
	From int64
	// Records of the operator.
	Records []trace.Record
	// Missing says what was left out.
	Missing []string

	notes    []notes.Note
	versions map[trace.Object][]version // in the order of their revisions
	bytes    int                        // of the versions
}

// version is one of an object: what its revision made of it, nil if that deleted it.
type version struct {
	Object   trace.Object    `json:"object"`
	Revision int64           `json:"revision"`
	Content  json.RawMessage `json:"content,omitempty"`
}

// line of a file has one of its fields.
type line struct {
	Format   string            `json:"format,omitempty"`
	Version  int               `json:"version,omitempty"`
	From     int64             `json:"from,omitempty"`
	Resource *mapping.Resource `json:"resource,omitempty"`
	Object   *version          `json:"object,omitempty"`
	Note     *notes.Note       `json:"note,omitempty"`
	Record   *trace.Record     `json:"record,omitempty"`
	Missing  string            `json:"missing,omitempty"`
	End      bool              `json:"end,omitempty"`
}

// Write writes the file.
func (f *File) Write(to io.Writer) error {
	out := bufio.NewWriter(to)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var err error
	put := func(l line) {
		if err == nil {
			err = encoder.Encode(l)
		}
	}
	put(line{Format: format, Version: formatVersion, From: f.From})
	for i := range f.resources {
		put(line{Resource: &f.resources[i]})
	}
	for _, all := range f.versions {
		for i := range all {
			put(line{Object: &all[i]})
		}
	}
	for i := range f.notes {
		put(line{Note: &f.notes[i]})
	}
	for i := range f.Records {
		put(line{Record: &f.Records[i]})
	}
	for _, missing := range f.Missing {
		put(line{Missing: missing})
	}
	put(line{End: true})
	return errors.Join(err, out.Flush())
}

// Read reads a file. It refuses one that was cut: what is not in it would be taken for what
// did not happen.
func Read(from io.Reader) (*File, error) {
	f := &File{versions: map[trace.Object][]version{}}
	lines := bufio.NewScanner(io.LimitReader(from, maxFile))
	lines.Buffer(nil, maxLine)
	ended := false
	for n := 1; lines.Scan(); n++ {
		var l line
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case n == 1 && (err != nil || l.Format != format):
			return nil, errors.New("it is no file of a failed test; for records of an operator use --records")
		case n == 1 && l.Version != formatVersion:
			return nil, fmt.Errorf("it has version %d of the format, and this program reads version %d: use the version of Steer that the test has", l.Version, formatVersion)
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case ended:
			return nil, fmt.Errorf("line %d is behind the end", n)
		}
		ended = l.End
		f.take(&l)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !ended {
		return nil, errors.New("it was cut: it has no end")
	}
	f.sort()
	return f, nil
}

func (f *File) take(l *line) {
	switch {
	case l.Resource != nil:
		f.resources = append(f.resources, *l.Resource)
	case l.Object != nil:
		f.versions[l.Object.Object] = append(f.versions[l.Object.Object], *l.Object)
	case l.Note != nil:
		f.notes = append(f.notes, *l.Note)
	case l.Record != nil:
		f.Records = append(f.Records, *l.Record)
	case l.Missing != "":
		f.Missing = append(f.Missing, l.Missing)
	case l.From > 0:
		f.From = l.From
	}
}

func (f *File) sort() {
	for _, all := range f.versions {
		slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(a.Revision, b.Revision) })
	}
}

// Objects are those that the file has a version of, in the order of their names.
func (f *File) Objects() (all []trace.Object) {
	for object := range f.versions {
		all = append(all, object)
	}
	slices.SortFunc(all, func(a, b trace.Object) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// At implements [Source].
func (f *File) At(_ context.Context, object trace.Object, revision int64) (map[string]any, error) {
	if revision > 0 && revision < f.From {
		return nil, ErrForgotten
	}
	all := f.versions[object]
	for i := len(all) - 1; i >= 0; i-- {
		if revision == 0 || all[i].Revision <= revision {
			return all[i].content()
		}
	}
	return nil, nil
}

func (v *version) content() (content map[string]any, err error) {
	if len(v.Content) > 0 {
		err = json.Unmarshal(v.Content, &content)
	}
	return content, err
}

// All implements [Source].
func (f *File) All(_ context.Context, namespace string) (all []Object, missing []string) {
	for _, object := range f.Objects() {
		if namespace != "" && object.Namespace != namespace {
			continue
		}
		versions := f.versions[object]
		content, err := versions[len(versions)-1].content()
		if err != nil {
			missing = append(missing, object.String()+": "+err.Error())
		}
		if content != nil {
			all = append(all, Object{object, content})
		}
	}
	return all, append(missing, f.Missing...)
}

// Notes implements [Source].
func (f *File) Notes(context.Context) (items []notes.Note, why string) {
	if len(f.notes) == 0 {
		return nil, "the file has no notes of who wrote a revision"
	}
	return f.notes, ""
}

// add adds a version.
func (f *File) add(object trace.Object, revision int64, content map[string]any) error {
	v := version{Object: object, Revision: revision}
	if content != nil {
		var err error
		if v.Content, err = json.Marshal(content); err != nil {
			return err
		}
	}
	f.bytes += len(v.Content)
	f.versions[object] = append(f.versions[object], v)
	return nil
}

func (f *File) has(object trace.Object, revision int64) bool {
	return slices.ContainsFunc(f.versions[object], func(v version) bool { return v.Revision == revision })
}

func revisionOf(content map[string]any) int64 {
	metadata, _ := content["metadata"].(map[string]any)
	text, _ := metadata["resourceVersion"].(string)
	revision, _ := strconv.ParseInt(text, 10, 64) // no revision is 0
	return revision
}
