// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"slices"
	"testing"
)

func TestFlagsOfEtcdAreLeftOutWithTheirValues(t *testing.T) {
	t.Parallel()
	got := withoutEtcd([]string{"--etcd-prefix", "a", "--etcd-servers=http://x", "--v=1", "--etcd-tls", "--runtime-config", "api/all=true"})
	if want := []string{"--v=1", "--runtime-config", "api/all=true"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}
