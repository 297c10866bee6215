// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lived is the life of an object with a uid of its own.
func lived(s *server, kind, name string, life Life, owners ...*unstructured.Unstructured) Life {
	version := "v1"
	if kind == "Database" {
		version = "example.com/v1"
	}
	life.Object = s.object(version, kind, name, owners...)
	return life
}

func TestDestroyedIsWhatTheReferenceKeeps(t *testing.T) {
	t.Parallel()
	s := &server{Rand: rand.New(rand.NewPCG(1, 1))}
	kept := lived(s, "Secret", "a", Life{Created: 1})
	deleted := lived(s, "Secret", "a", Life{Created: 1, Deleted: 2, DeletedBy: "operator"})
	byUser := lived(s, "Secret", "a", Life{Created: 1, Deleted: 2, DeletedBy: "user"})
	again := lived(s, "Secret", "a", Life{Created: 3})
	againDeleted := lived(s, "Secret", "a", Life{Created: 3, Deleted: 4, DeletedBy: "operator"})
	for name, c := range map[string]struct {
		reference, run []Life
		want           bool
	}{
		"equal":                     {[]Life{kept}, []Life{kept}, false},
		"deleted":                   {[]Life{kept}, []Life{deleted}, true},
		"deleted, and healed":       {[]Life{kept}, []Life{deleted, again}, true},
		"replaced in both":          {[]Life{deleted, again}, []Life{deleted, again}, false},
		"replaced, then lost":       {[]Life{deleted, again}, []Life{deleted, againDeleted}, true},
		"made and removed by both":  {[]Life{deleted}, []Life{deleted}, false},
		"made and removed twice":    {[]Life{deleted}, []Life{deleted, againDeleted}, false},
		"deleted by the user alone": {[]Life{kept}, []Life{byUser, again}, false},
		"deleted before the user":   {[]Life{byUser}, []Life{deleted}, true},
		"known to the run alone":    {nil, []Life{deleted}, false},
	} {
		got := Destroyed(New(c.reference), New(c.run), "operator")
		if (len(got) == 1 && got[0] == "Secret default/a") != c.want || !c.want && len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOrphansAreCreatedForOwnersThatWereLetGo(t *testing.T) {
	t.Parallel()
	s := &server{Rand: rand.New(rand.NewPCG(1, 1))}
	owner := lived(s, "Database", "db", Life{Created: 1, Deleted: 5, DeletedBy: "operator"})
	before := lived(s, "Secret", "before", Life{Created: 4, Deleted: 6, CreatedBy: "operator"}, owner.Object)
	after := lived(s, "Secret", "after", Life{Created: 6, Deleted: 7, CreatedBy: "operator"}, owner.Object)
	byUser := lived(s, "Database", "old", Life{Created: 1, Deleted: 5, DeletedBy: "user"})
	late := lived(s, "Secret", "late", Life{Created: 6, Deleted: 7, CreatedBy: "operator"}, byUser.Object)
	got := Orphans(New([]Life{owner, before, after, byUser, late}))
	if want := []string{"Secret default/after, created for Database.example.com default/db, which was deleted before"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestLeftoversOutliveWhatTheyWereCreatedFor(t *testing.T) {
	t.Parallel()
	s := &server{Rand: rand.New(rand.NewPCG(1, 1))}
	database := func(name string, life Life) Life {
		life = lived(s, "Database", name, life)
		life.Object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "any", Subresource: "status"}})
		return life
	}
	db := database("db", Life{Created: 2, CreatedBy: "user"})
	dead := database("db", Life{Created: 2, Deleted: 5, CreatedBy: "user"})
	other := database("other", Life{Created: 2, CreatedBy: "user"})
	silent := lived(s, "Database", "silent", Life{Created: 2, Deleted: 5, CreatedBy: "user"}) // without status
	own := lived(s, "ConfigMap", "own", Life{Created: 1, CreatedBy: "operator"})
	child := lived(s, "Secret", "db", Life{Created: 3, CreatedBy: "operator"})
	owned := lived(s, "Secret", "owned", Life{Created: 3, CreatedBy: "operator"}, silent.Object)
	users := lived(s, "Secret", "users", Life{Created: 3, CreatedBy: "user"})
	for name, c := range map[string]struct {
		lives []Life
		want  []string
	}{
		"alive":            {[]Life{db, own, child, users}, nil},
		"deleted":          {[]Life{dead, own, child, users}, []string{"Secret default/db"}},
		"another is left":  {[]Life{dead, other, own, child}, nil},
		"cleaned up":       {[]Life{dead, own, users}, nil},
		"never there":      {[]Life{own, child}, nil},
		"not looked after": {[]Life{silent, own, child}, nil},
		"by its reference": {[]Life{silent, own, owned}, []string{"Secret default/owned"}},
	} {
		if got := Leftovers(New(c.lives), "operator"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
