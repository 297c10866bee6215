// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// TestManagedFieldsAgreeWithTheLibrary applies random writes and compares each outcome,
// times included, with that of the library, which has no shortcuts.
func TestManagedFieldsAgreeWithTheLibrary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, rememberedOutcomes)
}

func rememberedOutcomes(t *testing.T) {
	w := newWriters(t)
	const histories = 10
	for seed := range uint64(100) {
		// A history is repeated with other times and other values.
		w.raw = seed%2 == 0
		w.history(t, rand.New(rand.NewPCG(seed%histories, 2)), rand.New(rand.NewPCG(seed, 3)), fmt.Sprint(seed/histories))
	}
	for did, times := range w.remembered {
		if times < 30 {
			t.Errorf("only %d of the writes took the short cut: %s", times, did)
		}
	}
	if len(w.remembered) != 2 {
		t.Errorf("remembered %v, want both kinds of writes", w.remembered)
	}
}

// FuzzHistories: managedFields after random applies and updates, conflicts and removals
// included, are those of the library, also when the same writes come again.
func FuzzHistories(f *testing.F) {
	f.Add([]byte{}, uint64(1))
	f.Add([]byte("\x80\x80applies of one manager, again and again, until an outcome is known"), uint64(2))
	f.Fuzz(func(t *testing.T, choices []byte, times uint64) {
		synctest.Test(t, func(t *testing.T) {
			w := newWriters(t)
			for again := range uint64(3) {
				w.raw = again%2 == 0
				w.history(t, rand.New(&bytesSource{rest: choices}), rand.New(rand.NewPCG(times, again)), fmt.Sprint(again))
			}
		})
	})
}

// writers are the endpoints of a kind, and others that only lend their library.
type writers struct {
	main, status, plain, plainStatus *Manager
	// raw lets updates leave managedFields raw.
	raw bool
	// remembered counts the writes that took the short cut.
	remembered map[string]int
}

func newWriters(t *testing.T) *writers {
	w := &writers{remembered: map[string]int{}}
	w.main, w.status = endpoints(t)
	w.plain, w.plainStatus = endpoints(t)
	return w
}

// history plays random writes to one object and compares each outcome with that of the library.
func (w *writers) history(t *testing.T, r, chance *rand.Rand, suffix string) {
	t.Helper()
	live := empty()
	for step := range 10 {
		time.Sleep(time.Duration(chance.IntN(3)) * time.Second)
		name := fmt.Sprintf("m%d", r.IntN(3))
		known := w.main.outcomes.count + w.status.outcomes.count
		var got, want Object
		var err, wantErr error
		did := "update"
		if r.IntN(2) == 0 {
			did = "apply"
			configuration, force := renamed(randomConfiguration(r), suffix), r.IntN(2) == 0
			library, fieldsErr := w.plain.bind(t.Context())
			if fieldsErr != nil {
				t.Fatal(fieldsErr)
			}
			var out any
			out, wantErr = library.Apply(live.DeepCopy(), configuration.DeepCopy(), name, force)
			want, _ = out.(Object)
			got, err = w.main.Apply(t.Context(), live, configuration, name, force)
			fromRaw, rawErr := w.main.Apply(t.Context(), rawCopy(live), configuration, name, force)
			if (err == nil) != (rawErr == nil) {
				t.Fatalf("step %d: apply: error %v, raw %v", step, err, rawErr)
			}
			_, like := w.main.applyLike(library, live, configuration, name, force)
			if _, rawLike := w.main.applyLike(library, rawCopy(live), configuration, name, force); like != rawLike {
				t.Fatalf("step %d: the short cut of apply is for one form only: %v", step, like)
			}
			if err == nil {
				if diff := cmp.Diff(content(got), content(decoded(fromRaw))); diff != "" {
					t.Fatalf("step %d: apply (-decoded +raw):\n%s", step, diff)
				}
			}
			if before, ok := w.main.applyLike(library, live, configuration, name, force); ok && before != nil && known == w.main.outcomes.count+w.status.outcomes.count {
				w.remembered[did]++
			}
		} else {
			next := changed(r, live, suffix)
			endpoint, reference := w.main, w.plain
			if r.IntN(4) == 0 {
				endpoint, reference = w.status, w.plainStatus
			}
			library, fieldsErr := reference.bind(t.Context())
			if fieldsErr != nil {
				t.Fatal(fieldsErr)
			}
			want = next.DeepCopy()
			if setManagedFieldsByLibrary(library, live.DeepCopy(), next.DeepCopy(), want, name) != nil {
				want.SetManagedFields(nil)
			}
			if endpoint.updatePlainly(live, next.DeepCopy(), name) {
				w.remembered[did]++
			}
			got, err = endpoint.Update(t.Context(), live, next.DeepCopy(), name)
			endpoint.binding.RawMembers = w.raw
			fromRaw, rawErr := endpoint.Update(t.Context(), rawCopy(live), rawCopy(next), name)
			endpoint.binding.RawMembers = false
			if rawErr != nil {
				t.Fatal(rawErr)
			}
			if diff := cmp.Diff(content(got), content(decoded(fromRaw))); diff != "" {
				t.Fatalf("step %d: update (-decoded +raw):\n%s", step, diff)
			}
			if plainly := endpoint.updatePlainly(live, next.DeepCopy(), name); plainly != endpoint.updatePlainly(rawCopy(live), rawCopy(next), name) {
				t.Fatalf("step %d: the short cut is for one form only: %v", step, plainly)
			}
		}
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("step %d: %s: error %v, want %v", step, did, err, wantErr)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(content(want), content(got)); diff != "" {
			t.Fatalf("step %d: %s (-library +ours):\n%s", step, did, diff)
		}
		live = stored(got)
	}
}

// content returns the JSON of an object as it would be stored.
func content(obj Object) map[string]any {
	u := obj.DeepCopyObject().(*unstructured.Unstructured)
	u.SetManagedFields(u.GetManagedFields())
	return u.Object
}

// rawCopy is a copy of an object with raw members.
func rawCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	wire.EncodeMembers(u.Object)
	return u
}

// renamed returns a copy in which all strings have another suffix.
func renamed(u *unstructured.Unstructured, suffix string) *unstructured.Unstructured {
	var rename func(value any) any
	rename = func(value any) any {
		switch v := value.(type) {
		case string:
			return v + suffix
		case map[string]any:
			for name, member := range v {
				v[name] = rename(member)
			}
		case []any:
			for i := range v {
				v[i] = rename(v[i])
			}
		}
		return value
	}
	for _, name := range []string{"spec", "status"} {
		rename(u.Object[name])
	}
	return u
}

// changed returns a copy with a few changes.
func changed(r *rand.Rand, live *unstructured.Unstructured, suffix string) *unstructured.Unstructured {
	random := renamed(randomWidget(r), suffix)
	next := live.DeepCopy()
	for _, key := range []string{"spec", "status"} {
		switch r.IntN(4) {
		case 0:
			if value, ok := random.Object[key]; ok {
				next.Object[key] = value
			}
		case 1:
			from, ok := random.Object[key].(map[string]any)
			into, has := next.Object[key].(map[string]any)
			if ok && has {
				name := []string{"replicas", "colour", "plain", "ready", "free"}[r.IntN(5)]
				if value, ok := from[name]; ok {
					into[name] = value
				}
			}
		}
	}
	if r.IntN(12) == 0 {
		next.SetManagedFields(nil)
	}
	next.SetUID(live.GetUID())
	return next
}

// randomConfiguration sets some fields, mostly existing ones.
func randomConfiguration(r *rand.Rand) *unstructured.Unstructured {
	u := empty()
	spec := map[string]any{}
	if r.IntN(2) == 0 {
		spec["replicas"] = int64(r.IntN(3))
	}
	if r.IntN(2) == 0 {
		spec["colour"] = string(rune('a' + r.IntN(3)))
	}
	if r.IntN(4) == 0 {
		spec["plain"] = []any{string(rune('a' + r.IntN(3)))}
	}
	if r.IntN(6) == 0 {
		spec["free"] = map[string]any{"x": string(rune('a' + r.IntN(3)))}
	}
	if r.IntN(8) == 0 {
		spec["tags"] = []any{string(rune('a' + r.IntN(3)))}
	}
	if r.IntN(10) == 0 {
		spec["colour"] = nil
	}
	if len(spec) > 0 || r.IntN(2) == 0 {
		u.Object["spec"] = spec
	}
	if r.IntN(3) == 0 {
		u.SetLabels(map[string]string{"a": string(rune('a' + r.IntN(3)))})
	}
	return u
}
