// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/steer-dev/steer/storage"
)

func TestLineageRecognizesAnotherHistory(t *testing.T) {
	t.Parallel()
	eras := func(at ...storage.Revision) (l lineage) {
		for _, rev := range at {
			l = append(l, era{rev, "a"})
		}
		return l
	}
	for _, test := range []struct {
		name      string
		ours      lineage
		seen      storage.Revision
		other     lineage
		isAnother bool
	}{
		{"the same", eras(10, 20), 30, eras(10, 20), false},
		{"nothing was seen", nil, 30, eras(10, 20), false},
		{"terms since", eras(10, 20), 30, eras(10, 20, 31), false},
		{"restored into a term, and grown", eras(10, 20), 30, eras(10, 20, 25, 90), true},
		{"restored to before a term, and grown", eras(10, 20), 30, eras(10, 12, 90), true},
		{"restored, with a term at the same revision", eras(10, 20), 30, append(eras(10), era{20, "b"}), true},
		{"restored, and bumped", eras(10, 20), 30, eras(10, 1000000012), false},
		{"older terms are not kept", eras(20), 30, eras(10, 20), false},
		{"newer terms are not kept", eras(10, 20), 30, eras(40, 50), false},
	} {
		if err := test.ours.check(test.seen, test.other); errors.Is(err, ErrRestored) != test.isAnother {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestLineageKeepsItsNewestTerms(t *testing.T) {
	t.Parallel()
	var l lineage
	for term := range storage.Revision(2 * maxLineage) {
		value, err := l.next(1)
		if err != nil {
			t.Fatal(err)
		}
		l = lineageAt([]byte(value), term+1)
	}
	if len(l) != maxLineage || l[0].At != maxLineage+1 || l.newest() != 2*maxLineage {
		t.Errorf("%d terms from %d to %d", len(l), l[0].At, l.newest())
	}
}

func TestPagesAreSmallerWhereValuesAreLarge(t *testing.T) {
	t.Parallel()
	page := func(n, size int) []*mvccpb.KeyValue {
		var kvs []*mvccpb.KeyValue
		for range n {
			kvs = append(kvs, &mvccpb.KeyValue{Key: []byte("k"), Value: make([]byte, size)})
		}
		return kvs
	}
	for _, test := range []struct{ n, size, want int }{{100, 10, largestPage}, {100, 100 << 10, 163}, {100, 4 << 20, smallestPage}} {
		if got := nextPage(page(test.n, test.size)); int(got) != test.want {
			t.Errorf("after %d values of %d bytes: %d, want %d", test.n, test.size, got, test.want)
		}
	}
}

func TestHealthNamesWhatIsWrongWhereEtcdAnswers(t *testing.T) {
	t.Parallel()
	r := reads{confirmed: time.Now().Add(-time.Hour)}
	if err := r.health(); err == nil || strings.Contains(err.Error(), "%!") || !strings.Contains(err.Error(), "changes do not arrive") {
		t.Errorf("got %v", err)
	}
}
