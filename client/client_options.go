// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"log/slog"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
)

// Options of New. The zero value works for unstructured and metadata-only
// objects.
type Options struct {
	// Scheme knows the Go types. Nil means an empty scheme: only unstructured
	// and metadata-only objects work.
	Scheme *runtime.Scheme
	// HTTPClient sends the requests. Nil means one made from the config.
	HTTPClient *http.Client
	// Mapper is shared with other clients of the same server. Nil means an own one.
	Mapper *mapping.Mapper

	// FieldOwner is the manager name of writes that do not name one. Empty
	// leaves it to the server, and Apply has to name one.
	FieldOwner string
	// FieldValidation of writes that do not say: metav1.FieldValidationStrict,
	// FieldValidationWarn or FieldValidationIgnore. Empty leaves it to the
	// server, which warns.
	FieldValidation string
	// DryRun makes every write a dry run.
	DryRun bool
	// JSONOnly turns protobuf off.
	JSONOnly bool

	// BeforeWrite is called before a write reaches the wire; its error is returned
	// instead. Nil allows all. A manager fences lost leaders with it.
	BeforeWrite func(ctx context.Context, call *Call) error
	// OnAttempt receives every HTTP round trip, retries included: the source of the
	// rest_client_* metrics. Nil measures nothing.
	OnAttempt func(wire.Attempt)
	// Warnings takes the server's Warning headers. Nil logs each distinct one once.
	Warnings func(ctx context.Context, text string)
	// Log takes what an operator's author should know. Nil means slog.Default().
	Log *slog.Logger
}
