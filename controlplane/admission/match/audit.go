// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"log/slog"
)

// Annotate writes an audit annotation of a write to the log: a control plane has no other audit
// events. The key is that of kube-apiserver.
func (q *Request) Annotate(ctx context.Context, log *slog.Logger, key, value string) {
	user := ""
	if q.User != nil {
		user = q.User.Name
	}
	log.LogAttrs(ctx, slog.LevelInfo, "audit annotation", slog.String("annotation", key), slog.String("value", value),
		slog.String("user", user), slog.String("verb", q.Verb), slog.String("resource", q.GVR.GroupResource().String()),
		slog.String("subresource", q.Subresource), slog.String("namespace", q.AttributedNamespace), slog.String("name", q.Name))
}
