// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
)

// maxAuditID is how many characters of an Audit-ID an API server repeats in its answer.
const maxAuditID = 64

type auditKey struct{}

// WithAuditID returns a context whose requests carry an id in the header Audit-ID, by
// which the API server's audit log names them: that of the reconcile that sends them, for
// instance. Ids are of letters, digits and dashes, 64 at most; no other is sent. The
// server takes any id from any client, so that one in its log proves nothing about the
// sender: the user does.
func WithAuditID(ctx context.Context, id fmt.Stringer) context.Context {
	return context.WithValue(ctx, auditKey{}, id)
}

// AuditKey is the context key under which an id is looked for, for context types of
// their own that answer it with a [fmt.Stringer] in their Value method.
func AuditKey() any { return auditKey{} }

// auditID returns the id that the requests of ctx carry, empty for none.
func auditID(ctx context.Context) string {
	stringer, ok := ctx.Value(auditKey{}).(fmt.Stringer)
	if !ok {
		return ""
	}
	id := stringer.String()
	if len(id) > maxAuditID {
		return ""
	}
	for _, c := range []byte(id) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return ""
		}
	}
	return id
}
