// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/apiserver/audit"
)

// Annotate adds an audit annotation to a write. The key is that of kube-apiserver. Where
// requests are not recorded, it goes to the log.
func (q *Request) Annotate(ctx context.Context, log *slog.Logger, key, value string) {
	if audit.From(ctx) != nil {
		q.Note(ctx, key, value)
		return
	}
	user := ""
	if q.User != nil {
		user = q.User.Name
	}
	log.LogAttrs(ctx, slog.LevelInfo, "audit annotation", slog.String("annotation", key), slog.String("value", value),
		slog.String("user", user), slog.String("verb", q.Verb), slog.String("resource", q.GVR.GroupResource().String()),
		slog.String("subresource", q.Subresource), slog.String("namespace", q.AttributedNamespace), slog.String("name", q.Name))
}

// Note adds an audit annotation to a write that is recorded. One whose key is not a name with
// a prefix is dropped.
func (*Request) Note(ctx context.Context, key, value string) {
	if strings.Count(key, "/") == 1 && len(validation.IsQualifiedName(key)) == 0 {
		audit.From(ctx).Annotate(key, value)
	}
}

// NoteJSON is [Request.Note] with a value that is encoded.
func (q *Request) NoteJSON(ctx context.Context, key string, value any) {
	if audit.From(ctx) == nil {
		return
	}
	if text, err := json.Marshal(value); err == nil { // strings and what was JSON
		q.Note(ctx, key, string(text))
	}
}

// RecordsObjects reports whether what clients send is recorded.
func (*Request) RecordsObjects(ctx context.Context) bool { return audit.From(ctx).WantsRequest() }
