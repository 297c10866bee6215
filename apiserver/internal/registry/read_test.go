// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import "testing"

// TestBeginsWithRecognisesOnlyItsVersion: the prefix test never takes one version for
// another and never reads beyond the value.
func TestBeginsWithRecognisesOnlyItsVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, group, version string
		want                  bool
	}{
		{`{"apiVersion":"a.example/v1","kind":"A"}`, "a.example", "v1", true},
		{`{"apiVersion":"v1"}`, "", "v1", true},
		{`{"apiVersion":"a.example/v1beta1","kind":"A"}`, "a.example", "v1", false},
		{`{"apiVersion":"a.example/v1","kind":"A"}`, "a.example", "v1beta1", false},
		{`{"apiVersion":"b.example/v1","kind":"A"}`, "a.example", "v1", false},
		{`{"apiVersion":"v1","kind":"ConfigMap"}`, "a.example", "v1", false},
		{`{"apiVersion":"a.example/v1","kind":"A"}`, "", "v1", false},
		{`{"kind":"A","apiVersion":"a.example/v1"}`, "a.example", "v1", false},
		{`{"apiVersion":"a.exam`, "a.example", "v1", false},
		{`{"apiVersion":"a.example/v1`, "a.example", "v1", false},
		{``, "", "v1", false},
	} {
		if got := beginsWith([]byte(c.value), c.group, c.version); got != c.want {
			t.Errorf("%s as %s/%s: %v, want %v", c.value, c.group, c.version, got, c.want)
		}
	}
}
