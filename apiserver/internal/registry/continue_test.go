// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/storage"
)

func TestContinueTokensRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []continuation{{Revision: 7, Start: "default/a\x00"}, {Revision: newestRevision, Start: "a"}} {
		got, err := decodeContinuation(want.encode())
		if err != nil || got.Revision != want.Revision || got.Start != want.Start {
			t.Errorf("%+v is read as %+v: %v", want, got, err)
		}
	}
}

func TestContinueTokensThatLeaveTheCollectionAreRefused(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{
		"no base64":      "%",
		"no JSON":        base64.RawURLEncoding.EncodeToString([]byte("x")),
		"other version":  base64.RawURLEncoding.EncodeToString([]byte(`{"v":"v9","rv":1,"start":"a"}`)),
		"no revision":    continuation{Start: "a"}.encode(),
		"no start":       continuation{Revision: 1}.encode(),
		"parent":         continuation{Revision: 1, Start: "../secrets/a"}.encode(),
		"hidden parent":  continuation{Revision: 1, Start: "default/../other/a"}.encode(),
		"doubled slash":  continuation{Revision: 1, Start: "default//a"}.encode(),
		"trailing slash": continuation{Revision: 1, Start: "default/"}.encode(),
	} {
		if c, err := decodeContinuation(token); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestParseRevisionAcceptsDecimalNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]storage.Revision{"": 0, "0": 0, "42": 42} {
		if got, err := ParseRevision(text); err != nil || got != want {
			t.Errorf("%q is read as %d: %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "-1", "1.0", " 1", "18446744073709551616"} {
		if got, err := ParseRevision(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
