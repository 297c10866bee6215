// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func TestReleasesAreDeletionsAndLeasesWithoutHolder(t *testing.T) {
	t.Parallel()
	held := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a")}}
	for name, c := range map[string]struct {
		event watch.EventType
		obj   runtime.Object
		want  bool
	}{
		"held":     {watch.Modified, held, false},
		"released": {watch.Modified, &coordinationv1.Lease{}, true},
		"deleted":  {watch.Deleted, held, true},
		"bookmark": {watch.Bookmark, &coordinationv1.Lease{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &releases{seen: make(chan struct{}, 1)}
			stream := watch.NewFakeWithChanSize(1, false)
			stream.Action(c.event, c.obj)
			stream.Stop()
			r.follow(stream)
			if got := len(r.seen) == 1; got != c.want {
				t.Errorf("release seen: %v, want %v", got, c.want)
			}
		})
	}
}
