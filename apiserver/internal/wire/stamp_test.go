// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"testing"
)

// FuzzUsualStamps: the one-pass search for the revision finds the same offset as
// parsing the metadata.
func FuzzUsualStamps(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"0","labels":{"a":"b"}},"spec":{}}`,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b","resourceVersion":"0"},"resourceVersion":"0"}}`,
		`{"kind":"Pod","metadata":{"name":"a"},"spec":{"x":"y","resourceVersion":"0"}}`,
		`{"kind":"Pod","spec":{"x":"y","resourceVersion":"0"},"metadata":{"name":"a","resourceVersion":"0"}}`,
		`{"kind":"Pod","items":["a"],"metadata":{"name":"a","resourceVersion":"0"}}`,
		`{"kind":"Pod","a":",\"metadata\":{","spec":{"x":"y","resourceVersion":"0"}}`,
		`{"kind":"Pod","metadata":{"name":",\"resourceVersion\":\"0\"","resourceVersion":"0"}}`,
		`{"kind":"{","metadata":{"name":"}","resourceVersion":"0"}}`, `{"metadata":{"name":"a","resourceVersion":"01"}}`, `{"a":"b","resourceVersion":"0"}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		stamp, ok := usualStamp(value)
		if !ok || !json.Valid(value) {
			return
		}
		start, end, found := Find(value, "metadata", "resourceVersion")
		if !found || start+1 != stamp || end-1 != stamp+len(Placeholder) {
			t.Errorf("%s: found at %d, want %d to %d", value, stamp, start+1, end-1)
		}
	})
}

// TestEncodedGoTypesHaveAUsualStamp: the one-pass search succeeds on encoded Go
// types.
func TestEncodedGoTypesHaveAUsualStamp(t *testing.T) {
	t.Parallel()
	if _, ok := usualStamp([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"b","resourceVersion":"0","labels":{"a":"b"}},"spec":{}}`)); !ok {
		t.Error("a Pod is left to reading its members")
	}
}
