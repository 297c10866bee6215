// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/auth"
)

// Request is one parsed API request. Handlers, strategies and admission share it; it is
// read-only after the server has filled it in.
type Request struct {
	// Verb as authorizers know it: get, list, watch, create, update, patch,
	// delete, deletecollection, or the HTTP method in lower case.
	Verb string
	// User that the request acts as.
	User *auth.User
	// Resource and Version of the path; nil outside the resource API.
	Resource *Resource
	Version  *Version
	// Subresource of the path; empty for the object itself.
	Subresource string
	Namespace   string
	Name        string
	// Path is the whole path, for requests outside the resource API.
	Path string
	// RawQuery is the encoded query.
	RawQuery string
	// UserAgent of the client.
	UserAgent string
	// AuditID of the request, as in its answer; the client may have chosen it.
	AuditID string
	// DryRun reports that a write stores nothing.
	DryRun bool
	// Warnings of the answer; nil drops them.
	Warnings *Warnings
}

// Warn adds a Warning header to the answer; repeated texts are sent once.
func (r *Request) Warn(text string) {
	if r.Warnings != nil {
		r.Warnings.Add(text)
	}
}

type requestKey struct{}

// WithRequest returns a context that belongs to a request.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom returns the request that a context belongs to, or nil.
func RequestFrom(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// IsDryRun reports whether the dryRun option of a request is set.
func IsDryRun(dryRun []string) bool {
	return len(dryRun) == 1 && dryRun[0] == metav1.DryRunAll
}

// Warnings collects the warnings of one answer, each text once. It is safe for
// concurrent use.
type Warnings struct {
	mu    sync.Mutex
	added *warningTexts // nil: none
}

type warningTexts struct {
	texts []string
	cut   int // runes of the texts, each cut to maxWarning
}

// Limits of the warnings of one answer, in runes.
const (
	maxWarnings = 4096
	maxWarning  = 256
)

// Add adds a warning. Texts that a header cannot have are dropped: empty ones, those with
// control characters, and those that are not UTF-8. So are those that come after as many
// as an answer can have.
func (w *Warnings) Add(text string) {
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return
	}
	text, length := firstRunes(text, maxWarnings+1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.added == nil {
		w.added = &warningTexts{}
	}
	if a := w.added; a.cut <= maxWarnings && !slices.Contains(a.texts, text) {
		a.texts = append(a.texts, text)
		a.cut += min(length, maxWarning)
	}
}

// firstRunes returns at most n runes of a text, and their number.
func firstRunes(text string, n int) (first string, length int) {
	for i := range text {
		if length == n {
			return text[:i], length
		}
		length++
	}
	return text, length
}

// Texts returns the warnings in the order in which they were added. If they are too long
// together, long ones are truncated, and if that does not suffice, the last ones are left
// out. The caller must not change them.
func (w *Warnings) Texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.added == nil {
		return nil
	}
	runes := 0
	for _, text := range w.added.texts {
		runes += utf8.RuneCountInString(text)
	}
	if runes <= maxWarnings {
		return slices.Clip(w.added.texts)
	}
	var out []string
	sent := 0
	for _, text := range w.added.texts {
		text, length := firstRunes(text, maxWarning)
		if sent += length; sent > maxWarnings {
			break
		}
		out = append(out, text)
	}
	return out
}
