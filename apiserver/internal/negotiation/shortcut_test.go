// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"net/http"
	"testing"
)

// TestAcceptShortcutAgreesWithParsing compares the exact-match path with parsing
// the headers.
func TestAcceptShortcutAgreesWithParsing(t *testing.T) {
	t.Parallel()
	known := 0
	for _, header := range []string{
		"application/json", "application/json, */*", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json",
		"application/yaml", "*/*", "text/plain", "application/json;as=Table;v=v1;g=meta.k8s.io",
	} {
		for i := range 8 {
			offer := Offer{Protobuf: i&1 != 0, Shapes: i&2 != 0, Stream: i&4 != 0}
			media, ok := usual(header, offer)
			if !ok {
				continue
			}
			known++
			if want, err := chosen(&http.Request{}, header, offer); err != nil || want != (Choice{Media: media}) {
				t.Errorf("%q of %+v: %v, want %+v, %v", header, offer, media, want, err)
			}
		}
	}
	if known != 2*8+2*4 {
		t.Errorf("%d are taken, want both of JSON always and both of protobuf where it is offered", known)
	}
}
