// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestEndsAreEqualWhateverServersGive(t *testing.T) {
	t.Parallel()
	for i := range uint64(60) {
		w := newWorld(rand.New(rand.NewPCG(i, 0)))
		a, b := New(w.run(2*i+1)), New(w.run(2*i+2))
		for _, d := range Compare(a, b, nil) {
			t.Errorf("world %d: %s", i, d)
		}
		if a.Hash() != b.Hash() {
			t.Errorf("world %d: other hashes", i)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestEndsDifferWhereRunsDo changes one thing of a world, and expects it to be named.
func TestEndsDifferWhereRunsDo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		do   func(*world)
		want string
	}{
		"a role":      {func(w *world) { w.members[0].role = "witness" }, `spec.role is "witness"`},
		"a size":      {func(w *world) { w.members[0].size = "2Gi" }, `spec.size is "2Gi": in the reference it is "1Gi"`},
		"a secret":    {func(w *world) { w.secret = "other" }, "Secret default/db: data.password is hidden: in the reference it is hidden"},
		"a member":    {func(w *world) { w.members = append(w.members, member{role: "witness", claim: len(w.members)}) }, "is there: the reference does not"},
		"a replica":   {func(w *world) { w.replicas++ }, "Pod default/web-~1-~"},
		"an owner":    {func(w *world) { w.orphan = true }, "uid of deleted Database.example.com db"},
		"a rollout":   {func(w *world) { w.rollout = 1 }, "the version of Database.example.com default/db"},
		"an old one":  {func(w *world) { w.stale = true }, "the version of Secret default/db"},
		"generations": {func(w *world) { w.behind = 1 }, "(1 behind)"},
		"a text":      {func(w *world) { w.config = "b" }, `ConfigMap default/db: data.text is "b at (time)"`},
		"a condition": {func(w *world) { w.condition = "False" }, `status.conditions[type=Ready].status is "False"`},
		"a claim's owner": {func(w *world) {
			w.members[0].claim, w.members[1].claim = 1, 0
		}, "PersistentVolumeClaim default/data-db-~1-0: metadata."},
		"the leader": {func(w *world) {
			w.leader = (w.leader + 1) % len(w.members)
		}, "status.leader"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(6) {
				w := newWorld(rand.New(rand.NewPCG(i, 0)))
				other := w
				other.members = slices.Clone(w.members)
				if name == "the leader" || name == "a claim's owner" { // Pods that differ
					w.members = []member{{role: "primary", claim: 0}, {role: "replica", claim: 1}}
					w.leader = 0
					other = w
					other.members = slices.Clone(w.members)
				}
				change.do(&other)
				a, b := New(w.run(2*i+1)), New(other.run(2*i+2))
				var text []string
				for _, d := range Compare(a, b, nil) {
					text = append(text, d.String())
				}
				all := strings.Join(text, "\n")
				if len(text) == 0 || !strings.Contains(all, change.want) || strings.Contains(all, "s3cret") {
					t.Fatalf("world %d: want %q in\n%s", i, change.want, all)
				}
				if a.Hash() == b.Hash() && name != "a rollout" && name != "an old one" {
					t.Errorf("world %d: the same hash", i)
				}
			}
		})
	}
}

// TestEndsLoseNoObject takes each object away in turn.
func TestEndsLoseNoObject(t *testing.T) {
	t.Parallel()
	w := newWorld(rand.New(rand.NewPCG(3, 0)))
	lives := w.run(1)
	for i, life := range lives {
		past := life.Object.GetKind() == "ReplicaSet" && idle(life.Object)
		if past || life.Object.GetKind() == "Event" || life.Deleted != 0 {
			continue
		}
		less := slices.Delete(slices.Clone(w.run(1)), i, i+1)
		missing := 0
		found := Compare(New(lives), New(less), nil)
		if life.Object.GetKind() == "ReplicaSet" && len(found) > 0 {
			continue // the one before it is the newest now
		}
		for _, d := range found {
			if d.Type == Missing && strings.HasPrefix(d.Object, life.Object.GetKind()) {
				missing++
			}
		}
		if missing != 1 {
			t.Errorf("%d objects are missing without %s %s", missing, life.Object.GetKind(), life.Object.GetName())
		}
	}
}

// TestEndsOfAlikeObjectsArePairedTogether has Pods that differ in nothing, and claims that
// do: which Pod is paired with which decides which claim is.
func TestEndsOfAlikeObjectsArePairedTogether(t *testing.T) {
	t.Parallel()
	w := world{replicas: 1, members: []member{
		{role: "r", claim: 0, size: "1Gi"}, {role: "r", claim: 1, size: "2Gi"}, {role: "r", claim: 2, size: "2Gi"},
		{role: "r", claim: 4, size: "3Gi"}, {role: "r", claim: 5, size: "3Gi"}, {role: "r", claim: 3, size: "3Gi"},
	}}
	for i := range uint64(20) {
		if found := Compare(New(w.run(2*i+1)), New(w.run(2*i+2)), nil); len(found) > 0 {
			t.Fatalf("%v", found)
		}
	}
	two := w // one ring of three is not three claims that each own themselves
	two.members = slices.Clone(w.members)
	two.members[3].claim, two.members[4].claim, two.members[5].claim = 3, 4, 5
	if found := Compare(New(w.run(1)), New(two.run(2)), nil); len(found) == 0 {
		t.Error("a ring and three loops are equal")
	}
}

func TestMasksLeaveOutWhatIsRandom(t *testing.T) {
	t.Parallel()
	w := newWorld(rand.New(rand.NewPCG(1, 0)))
	draw := func(i int, config string) *State {
		w := w
		w.secret, w.config = fmt.Sprint("random", i), config
		return New(w.run(uint64(i)))
	}
	masks, rest := Learn(draw(1, "a"), draw(2, "a"))
	if want := []string{"Secret default/db: data.password"}; !slices.Equal(masks.Paths(), want) || len(rest) > 0 {
		t.Fatalf("masks %q, and %v", masks.Paths(), rest)
	}
	if found := Compare(draw(1, "a"), draw(3, "a"), masks); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if found := Compare(draw(1, "a"), draw(3, "b"), masks); len(found) != 1 || found[0].Path != "data.text" {
		t.Errorf("%v", found)
	}
	w.replicas++
	more := draw(2, "a")
	w.replicas--
	if _, rest := Learn(draw(1, "a"), more); len(rest) != 1 || rest[0].Type != Extra {
		t.Errorf("a Pod more is masked: %v", rest)
	}
}

func TestDifferencesOfOneObjectAreBounded(t *testing.T) {
	t.Parallel()
	draw := func(value string) *State {
		lives := world{members: []member{{}}}.run(1)
		for _, life := range lives {
			if life.Object.GetKind() == "ConfigMap" {
				data := map[string]any{}
				for i := range 30 {
					data[fmt.Sprintf("key-%02d", i)] = value
				}
				life.Object.Object["data"] = data
			}
		}
		return New(lives)
	}
	found := Compare(draw("a"), draw(strings.Repeat("b", 500)), nil)
	if len(found) != maxChanges || !strings.Contains(found[9].Got, "20 more fields differ") || len(found[0].Got) > 130 {
		t.Errorf("%d: %v", len(found), found)
	}
}

func BenchmarkCompare(b *testing.B) {
	w := newWorld(rand.New(rand.NewPCG(1, 0)))
	x, y := w.run(1), w.run(2)
	b.ReportMetric(float64(len(x)), "objects")
	for b.Loop() {
		if found := Compare(New(x), New(y), nil); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
