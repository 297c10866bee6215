// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ID names one reconcile, among those of all replicas and of all starts. The zero value
// is no id.
type ID struct {
	// Recorder is the number that the recorder drew when it was made.
	Recorder uint64
	// Number counts the reconciles of the recorder, from 1.
	Number uint64
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the recorder as sixteen hexadecimal digits, a dash and the number:
// "9f3c21aa65a1b2c3-42". It has at most 37 characters.
func (id ID) String() string {
	const digits = "0123456789abcdef"
	b := make([]byte, 17, 37)
	for i := range 16 {
		b[i] = digits[id.Recorder>>(60-4*i)&15]
	}
	b[16] = '-'
	return string(strconv.AppendUint(b, id.Number, 10))
}

// MarshalText returns the form of [ID.String].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of [ID.String].
func (id *ID) UnmarshalText(text []byte) error {
	recorder, number, _ := strings.Cut(string(text), "-")
	r, err := strconv.ParseUint(recorder, 16, 64)
	n, err2 := strconv.ParseUint(number, 10, 64)
	if len(recorder) != 16 || err != nil || err2 != nil {
		return fmt.Errorf("trace: parse id %q: it needs sixteen hexadecimal digits, a dash and a number", text)
	}
	*id = ID{Recorder: r, Number: n}
	return nil
}

// Object names an API object, or with an empty Name a collection of them.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns the kind and the name, "Pod default/web-1".
func (o Object) String() string {
	switch {
	case o.Name == "" && o.Namespace == "":
		return o.Kind
	case o.Kind == "":
		return o.key()
	}
	return o.Kind + " " + o.key()
}

func (o Object) key() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// secret reports that what is said about the object must not be quoted.
func (o Object) secret() bool {
	return o.Group == "" && (o.Kind == "Secret" || o.Kind == "SecretList")
}

// CauseType says what brought a request into the queue.
type CauseType uint8

// The types of causes.
const (
	// Unknown is a cause that its source did not name.
	Unknown CauseType = iota
	// Listed: the object was there when the watch began.
	Listed
	// Created, Updated, Deleted: a watch event of the object.
	Created
	Updated
	Deleted
	// Resynced: the periodic repetition of an unchanged object.
	Resynced
	// Signalled: a value from a channel or another source without an object.
	Signalled
	// Polled: a polling source found a difference.
	Polled
	// Delayed: the last reconcile asked to come back.
	Delayed
	// Retried: the last reconcile failed.
	Retried
)

var causeNames = [...]string{"unknown", "listed", "created", "updated", "deleted", "resynced", "signalled", "polled", "delayed", "retried"}

// String returns the lower-case name.
func (t CauseType) String() string { return nameOf(causeNames[:], uint8(t)) }

// MarshalText returns the form of String.
func (t CauseType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the form of String.
func (t *CauseType) UnmarshalText(text []byte) error {
	n, err := valueOf(causeNames[:], "cause", text)
	*t = CauseType(n)
	return err
}

// Cause is one reason for a reconcile.
type Cause struct {
	Type CauseType `json:"type"`
	Object
	// Revision of the object that the event carried; of a cause that came several times,
	// that of the newest event.
	Revision string `json:"revision,omitempty"`
	// First is the revision of the first event of a cause that came several times; empty
	// if it is that of the newest.
	First string `json:"firstRevision,omitempty"`
	// Changed lists the changed fields as paths joined by commas; see [Differ].
	Changed string `json:"changed,omitempty"`
	// Count tells how many times the cause came; 0 means once.
	Count int `json:"count,omitempty"`
}

// String returns for instance "updated Pod default/web-1@44 (status.phase)", and with
// "@41..44" what came at several revisions.
func (c Cause) String() string {
	var b strings.Builder
	b.WriteString(c.Type.String())
	if c.Object != (Object{}) {
		b.WriteString(" " + c.Object.String())
	}
	if c.Revision != "" {
		b.WriteByte('@')
		if c.First != "" {
			b.WriteString(c.First + "..")
		}
		b.WriteString(c.Revision)
	}
	if c.Changed != "" {
		b.WriteString(" (" + c.Changed + ")")
	}
	if c.Count > 1 {
		fmt.Fprintf(&b, " x%d", c.Count)
	}
	return b.String()
}

// Verb is what an access did.
type Verb uint8

// The verbs of accesses. Get and List read, the others write.
const (
	Get Verb = iota + 1
	List
	Create
	Update
	Patch
	Apply
	Delete
	DeleteAllOf
)

var verbNames = [...]string{"", "get", "list", "create", "update", "patch", "apply", "delete", "deletecollection"}

// String returns the lower-case name.
func (v Verb) String() string { return nameOf(verbNames[:], uint8(v)) }

// Reads reports whether the verb leaves the server unchanged.
func (v Verb) Reads() bool { return v == Get || v == List }

// MarshalText returns the form of String.
func (v Verb) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the form of String.
func (v *Verb) UnmarshalText(text []byte) error {
	n, err := valueOf(verbNames[:], "verb", text)
	*v = Verb(n)
	return err
}

// VerbOf returns the verb of that name, which is also that of a client.Verb; 0 for one that
// is not recorded, such as watch.
func VerbOf(name string) Verb { return Verb(max(slices.Index(verbNames[:], name), 0)) }

// Access is one read or write of a reconcile.
type Access struct {
	Verb Verb `json:"verb"`
	Object
	// Subresource that was addressed, "status" for instance.
	Subresource string `json:"subresource,omitempty"`
	// Revision of the object or list that was read, or that the write made.
	Revision string `json:"revision,omitempty"`
	// Items counts what a list returned: a list is one access.
	Items int `json:"items,omitempty"`
	// Cached reports that no request was sent.
	Cached bool `json:"cached,omitempty"`
	// Changed lists fields as paths joined by commas, [MaxWritten] at most, with "..." at the
	// end if there are more: of a patch those that it sets or removes, of an update or an
	// apply those in which the answer differs from the version that was known when it was
	// sent. It is empty where that is not known, and where nothing was changed. It holds
	// no values.
	Changed string `json:"changed,omitempty"`
	// Absent reports that a read found nothing, which is an answer, not a failure.
	Absent bool `json:"absent,omitempty"`
	// Error is the message of a failed access. It may quote values of the object, as API
	// servers do when they refuse one; not those of a Secret.
	Error string `json:"error,omitempty"`
}

// String returns for instance "list Pod@44[2]" or "patch Replicas/status@46".
func (a Access) String() string {
	var b strings.Builder
	b.WriteString(a.Verb.String() + " " + a.Kind)
	if a.Subresource != "" {
		b.WriteString("/" + a.Subresource)
	}
	if a.Name != "" {
		b.WriteString(" " + a.key())
	}
	if a.Revision != "" {
		b.WriteString("@" + a.Revision)
	}
	if a.Verb == List {
		fmt.Fprintf(&b, "[%d]", a.Items)
	}
	if a.Changed != "" {
		b.WriteString(" (" + a.Changed + ")")
	}
	switch {
	case a.Absent:
		b.WriteString(" absent")
	case a.Error != "":
		b.WriteString(" failed")
	}
	return b.String()
}

// Outcome is how a reconcile ended.
type Outcome uint8

// The outcomes.
const (
	// Done: nothing more to do until something changes.
	Done Outcome = iota + 1
	// Requeued: it asked to come back after a delay.
	Requeued
	// Again: it asked to come back with back-off, without an error.
	Again
	// Conflicted: a write met a newer revision; a quiet retry.
	Conflicted
	// Failed: it returned an error and is retried.
	Failed
	// Terminal: it returned an error that no retry can mend.
	Terminal
	// Panicked: it panicked and is retried.
	Panicked
	// TimedOut: its deadline passed; it is retried.
	TimedOut
	// GaveUp: it failed too often and is dropped until something changes.
	GaveUp
	// Stopped: the controller ended underneath it.
	Stopped
	// Allowed: a webhook admitted the request.
	Allowed
	// Denied: a webhook did not admit the request.
	Denied
	// Running: it has not ended; see [Recorder.Running].
	Running
)

var outcomeNames = [...]string{"", "done", "requeued", "again", "conflicted", "failed", "terminal", "panicked", "timedout", "gaveup", "stopped", "allowed", "denied", "running"}

// String returns the lower-case name.
func (o Outcome) String() string { return nameOf(outcomeNames[:], uint8(o)) }

// MarshalText returns the form of String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the form of String.
func (o *Outcome) UnmarshalText(text []byte) error {
	n, err := valueOf(outcomeNames[:], "outcome", text)
	*o = Outcome(n)
	return err
}

// Record is one reconcile, or one answer of a webhook.
type Record struct {
	ID ID `json:"id"`
	// Controller is the name of the controller, or the path of the webhook.
	Controller string `json:"controller"`
	// Object that was reconciled; for controllers of other requests it is empty.
	Object
	// Request is the request in words when it does not name an object, or more.
	Request string `json:"request,omitempty"`
	// Began is when the reconcile started.
	Began time.Time `json:"began"`
	// Waited is how long the request was ready before.
	Waited time.Duration `json:"waitedNanoseconds"`
	// Took is how long the reconcile ran.
	Took time.Duration `json:"tookNanoseconds"`
	// Retries counts the failures in a row before this attempt.
	Retries int `json:"retries,omitempty"`
	// Causes holds the first cause and the latest others, Adds counts them all.
	Causes []Cause `json:"causes,omitempty"`
	Adds   int     `json:"adds,omitempty"`
	// Reads and Writes in the order in which they finished.
	Reads  []Access `json:"reads,omitempty"`
	Writes []Access `json:"writes,omitempty"`
	// Omitted counts the accesses that did not fit into the record.
	Omitted int `json:"omitted,omitempty"`
	// Outcome says how it ended, After when it will come back by itself.
	Outcome Outcome       `json:"outcome"`
	After   time.Duration `json:"afterNanoseconds,omitempty"`
	// Error is the message of the error with which it ended. It is as the reconciler and
	// the API server wrote it, and may quote values of objects; see Access.Error.
	Error string `json:"error,omitempty"`
	// Missed counts the records that were overwritten between the one read
	// before and this one, because the reader was too slow.
	Missed int `json:"missed,omitempty"`
	// Stack is that of the goroutine of one that is running.
	Stack string `json:"stack,omitempty"`
}

// String tells the record in one line: controller and object, causes, reads,
// writes, outcome.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString(r.Controller + " ")
	if r.Request != "" {
		b.WriteString(r.Request)
	} else {
		b.WriteString(r.key())
	}
	b.WriteString(": ")
	writeAll(&b, r.Causes)
	b.WriteString(" -> ")
	writeAll(&b, r.Reads)
	b.WriteString(" -> ")
	writeAll(&b, r.Writes)
	b.WriteString(" -> " + r.Outcome.String())
	if r.After > 0 {
		fmt.Fprintf(&b, ", again in %v", r.After)
	}
	if r.Outcome == Running {
		fmt.Fprintf(&b, " for %v", r.Took.Round(time.Millisecond))
		if where := r.Where(); where != "" {
			b.WriteString(" at " + where)
		}
		return b.String()
	}
	fmt.Fprintf(&b, " in %v", r.Took.Round(time.Microsecond))
	if r.Error != "" {
		b.WriteString(": " + r.Error)
	}
	return b.String()
}

func writeAll[T fmt.Stringer](b *strings.Builder, list []T) {
	if len(list) == 0 {
		b.WriteString("-")
	}
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.String())
	}
}

func nameOf(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return "unknown"
}

func valueOf(names []string, what string, text []byte) (uint8, error) {
	for i, name := range names {
		if name == string(text) {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("trace: %q is not a %s; use one of %s", text, what, strings.Join(names, ", "))
}
