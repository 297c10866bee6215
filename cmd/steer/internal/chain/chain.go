// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chain finds out why an object is as it is: which write made a version, which
// reconcile that write belongs to, and what caused the reconcile. It knows three sources,
// and asks nothing by itself: the versions that a server still has, the notes of a server
// of Steer about who wrote them, and the records of operators. It says what is missing
// where a source has no answer, and guesses nothing: versions, writes and causes are
// joined by revisions alone.
package chain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/trace"
)

// Server has versions of objects; [versions.Source] is one.
type Server interface {
	// At returns an object as it was at a revision, 0 for now; nil if there was none. Of a
	// revision that it does not have any more it returns [versions.ErrForgotten].
	At(ctx context.Context, object trace.Object, revision int64) (map[string]any, error)
}

// Facts are what is known.
type Facts struct {
	Server Server
	// Notes of the server; if there are none, NoNotes says why.
	Notes   []notes.Note
	NoNotes string
	// Records returns those about an object; if there are none at all, NoRecords says why.
	Records   func(object trace.Object) []trace.Record
	NoRecords string
	// Ahead is told of objects whose records will be asked for, one after the other. nil is
	// not called.
	Ahead func(objects []trace.Object)
	// Plural is the name of the resource of a kind, as notes have it.
	Plural func(group, kind string) string
}

// Field is one that differs between two versions.
type Field struct {
	Path string `json:"path"`
	// Old and New are left out where the field was not there, and where the values are
	// not known or are those of a Secret.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
}

// Reconcile is one, by its record.
type Reconcile struct {
	ID         trace.ID `json:"id"`
	Controller string   `json:"controller"`
	Object     string   `json:"object,omitempty"`

	record *trace.Record
}

// Version is one of an object, and who wrote it.
type Version struct {
	Object   string    `json:"object"`
	Revision string    `json:"resourceVersion"`
	Time     time.Time `json:"time,omitzero"`
	// Change is created, updated or deleted; empty if that is not known.
	Change string `json:"change,omitempty"`
	// Fields that differ from the version before. With Values unset they are those that
	// the record of the write names, and their values are not known.
	Fields []Field `json:"fields,omitempty"`
	Values bool    `json:"values"`
	// Manager is the field manager, of the notes or of managedFields.
	Manager   string `json:"fieldManager,omitempty"`
	User      string `json:"user,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
	// Reconcile that wrote it, where a record says so.
	Reconcile *Reconcile `json:"reconcile,omitempty"`
	// AuditID that the client gave the request. It proves nothing by itself.
	AuditID string `json:"auditID,omitempty"`
	// Missing says what is not known of this version, and what would tell.
	Missing []string `json:"missing,omitempty"`

	// before and now are the version before and this one, with Values.
	before, now map[string]any
}

// Condition is one of a status.
type Condition struct{ Type, Status, Reason, Message string }

// Conditions are those of the object in this version; nil if its content is not known.
func (v *Version) Conditions() (out []Condition) {
	status, _ := v.now["status"].(map[string]any)
	all, _ := status["conditions"].([]any)
	for _, c := range all {
		c, _ := c.(map[string]any)
		text := func(name string) string { value, _ := c[name].(string); return value }
		if kind := text("type"); kind != "" {
			out = append(out, Condition{kind, text("status"), text("reason"), text("message")})
		}
	}
	return out
}

// History is what is known of an object, the newest version last.
type History struct {
	Object   string    `json:"object"`
	Versions []Version `json:"versions"`
	// End says why there is nothing older.
	End string `json:"end"`
}

// History returns at most so many versions of an object.
func (f *Facts) History(ctx context.Context, object trace.Object, most int) (History, error) {
	out := History{Object: object.String()}
	end, err := f.walk(ctx, object, func(v Version) bool {
		out.Versions = append(out.Versions, v)
		return len(out.Versions) < most
	})
	slices.Reverse(out.Versions)
	out.End = end
	return out, err
}

// walk yields the versions of an object, the newest first, until yield returns false, and
// says why there are no more.
func (f *Facts) walk(ctx context.Context, object trace.Object, yield func(Version) bool) (end string, err error) {
	current, err := f.Server.At(ctx, object, 0)
	if err != nil {
		return "", err
	}
	revision := revisionOf(current)
	if current == nil {
		if revision = f.newest(object); revision == 0 {
			return "there is no such object, and nothing is known of a former one" + f.lacking(), nil
		}
	}
	for {
		v, before, err := f.version(ctx, object, revision)
		if err != nil {
			return "", err
		}
		if !yield(v) {
			return "there may be older versions: the limit is reached", nil
		}
		switch {
		case v.Change == "created":
			return "it was created at " + v.Revision, nil
		case before > 0:
			revision = before
		default:
			return f.older(object, revision, yield), nil
		}
	}
}

// older yields what notes and records know of versions before a revision, whose values
// the server has forgotten.
func (f *Facts) older(object trace.Object, revision int64, yield func(Version) bool) (end string) {
	for {
		at := int64(0)
		for known := range f.revisions(object) {
			if known < revision && known > at {
				at = known
			}
		}
		if at == 0 {
			return "the server has forgotten what was before " + strconv.FormatInt(revision, 10) + f.lacking()
		}
		v := f.written(object, at)
		v.Missing = append(v.Missing, "its values: the server has forgotten them")
		if !yield(v) {
			return "there may be older versions: the limit is reached"
		}
		revision = at
	}
}

// lacking says which sources there are none of.
func (f *Facts) lacking() string {
	var out strings.Builder
	for _, why := range []string{f.NoNotes, f.NoRecords} {
		if why != "" {
			out.WriteString("; " + why)
		}
	}
	return out.String()
}

// version returns what a revision made of an object, and the revision of the version
// before, 0 if that is not known.
func (f *Facts) version(ctx context.Context, object trace.Object, revision int64) (Version, int64, error) {
	now, err := f.Server.At(ctx, object, revision)
	var before map[string]any
	if err == nil && revision > 1 { // 0 is now
		before, err = f.Server.At(ctx, object, revision-1)
	}
	v := f.written(object, revision)
	switch {
	case errors.Is(err, versions.ErrForgotten):
		v.Missing = append(v.Missing, "what was before: the server has forgotten it")
		return v, 0, nil
	case err != nil:
		return v, 0, err
	}
	v.Values, v.before, v.now = true, before, now
	v.Fields = differences(before, now, object)
	switch {
	case before == nil && now == nil:
		v.Values, v.Change = false, ""
		v.Missing = append(v.Missing, "the object: there is none at this revision")
	case before == nil:
		v.Change, v.Fields = "created", nil
	case now == nil:
		v.Change, v.Fields = "deleted", nil
	default:
		v.Change = "updated"
	}
	if now != nil {
		v.manage(now, before)
	}
	previous := revisionOf(before)
	return v, previous, nil
}

// written returns what notes and records say of a revision of an object.
func (f *Facts) written(object trace.Object, revision int64) Version {
	v := Version{Object: object.String(), Revision: strconv.FormatInt(revision, 10)}
	note := f.note(object, revision)
	if note != nil {
		v.Time, v.Manager, v.User, v.UserAgent, v.AuditID = note.Time, note.FieldManager, note.User, note.UserAgent, note.AuditID
	} else {
		v.Missing = append(v.Missing, "the user: "+cmp.Or(f.NoNotes, "the server has no note of this revision"))
	}
	for _, record := range f.Records(object) {
		for _, w := range record.Writes {
			if w.Object != object || w.Revision != v.Revision || w.Error != "" {
				continue
			}
			about := ""
			if record.Object != (trace.Object{}) {
				about = record.Object.String()
			}
			v.Reconcile = &Reconcile{record.ID, record.Controller, cmp.Or(about, record.Request), &record}
			if v.Time.IsZero() {
				v.Time = record.Began
			}
			for path := range strings.SplitSeq(w.Changed, ",") {
				if path != "" {
					v.Fields = append(v.Fields, Field{Path: path})
				}
			}
			return v
		}
	}
	if id := new(trace.ID); note != nil && id.UnmarshalText([]byte(note.AuditID)) == nil {
		v.Missing = append(v.Missing, "the record of reconcile "+note.AuditID+", which the request said it is of: "+cmp.Or(f.NoRecords, "none of the records at hand is of it"))
	}
	return v
}

// note returns that of a revision of an object, nil if there is none.
func (f *Facts) note(object trace.Object, revision int64) *notes.Note {
	for i := range f.Notes {
		if n := &f.Notes[i]; n.Revision == storage.Revision(revision) && f.isOf(n, object) {
			return n
		}
	}
	return nil
}

func (f *Facts) isOf(n *notes.Note, object trace.Object) bool {
	return n.Name == object.Name && n.Namespace == object.Namespace && n.Group == object.Group && n.Resource == f.Plural(object.Group, object.Kind)
}

// revisions yields those of writes of an object that notes and records know.
func (f *Facts) revisions(object trace.Object) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for i := range f.Notes {
			if n := &f.Notes[i]; f.isOf(n, object) && !yield(int64(n.Revision)) {
				return
			}
		}
		for _, record := range f.Records(object) {
			for _, w := range record.Writes {
				if n, err := strconv.ParseInt(w.Revision, 10, 64); err == nil && w.Object == object && w.Error == "" && !yield(n) {
					return
				}
			}
		}
	}
}

func (f *Facts) newest(object trace.Object) (newest int64) {
	for revision := range f.revisions(object) {
		newest = max(newest, revision)
	}
	return newest
}

// manage takes the manager and the time from managedFields where no note has them. Who sets
// a field owns it afterwards: the only owner of the fields that changed wrote them. And the
// only entry that got another time is that of the writer; an entry that only lost fields
// keeps its time, and of several writes within a second the time tells nothing. Where the
// two leave a doubt, no manager is named.
func (v *Version) manage(now, before map[string]any) {
	if v.Manager != "" {
		return
	}
	var fresh, writers []map[string]any
	for _, entry := range managedFields(now) {
		if !slices.ContainsFunc(managedFields(before), func(old map[string]any) bool {
			return old["manager"] == entry["manager"] && old["operation"] == entry["operation"] &&
				old["subresource"] == entry["subresource"] && old["time"] == entry["time"]
		}) {
			fresh = append(fresh, entry)
		}
	}
	for _, field := range v.Fields {
		owners := ownersOf(now, field.Path)
		if len(owners) > 1 {
			continue // they share the field
		}
		writers = append(writers, owners...)
	}
	if len(fresh) == 1 {
		writers = append(writers, fresh[0])
	}
	if len(writers) == 0 || slices.ContainsFunc(writers, func(w map[string]any) bool { return w["manager"] != writers[0]["manager"] }) {
		return
	}
	v.Manager, _ = writers[0]["manager"].(string)
	if text, ok := writers[0]["time"].(string); ok && v.Time.IsZero() {
		v.Time, _ = time.Parse(time.RFC3339, text)
	}
}

// ownersOf are the entries of managedFields that have a field. Items of lists are told by
// their keys there, and fields within what is owned as a whole are not named: neither has
// owners here.
func ownersOf(object map[string]any, path string) (owners []map[string]any) {
	for _, entry := range managedFields(object) {
		at, owned := entry["fieldsV1"].(map[string]any)
		for _, part := range parts(path) {
			if at, owned = at["f:"+part].(map[string]any); !owned {
				break
			}
		}
		if owned {
			owners = append(owners, entry)
		}
	}
	return owners
}
