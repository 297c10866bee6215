// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// booted returns a store with the objects of a fresh cluster, whose uids are their
// names: of schemas with "s-" before them, of levels with "l-".
func booted(t testing.TB) *storage.Memory {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	all := fresh().all
	for i := range all {
		prefix := "s-"
		if all[i].Key.Bucket == levels {
			prefix = "l-"
		}
		if _, err := store.Commit(t.Context(), all[i].Write(types.UID(prefix+all[i].Key.Name), time.Now().UTC().Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestClassifierFollowsTheStore: what matches, what does not, is in docs and oracle; this
// is about schemas and levels that come, change and go.
func TestClassifierFollowsTheStore(t *testing.T) {
	t.Parallel()
	store := booted(t)
	c := NewClassifier(store)
	asked := &auth.Attributes{User: &auth.User{Name: "ada", Groups: []string{auth.Authenticated}}, Verb: "get", ResourceRequest: true, Version: "v1", Resource: "pods", Namespace: "x"}
	want := func(when, schema, level string) {
		t.Helper()
		if s, l := c.Classify(t.Context(), asked); string(s) != schema || string(l) != level {
			t.Errorf("%s: %s, %s, want %s, %s", when, s, l, schema, level)
		}
	}
	put := func(name, user, level string, precedence int32) {
		steptest.Put(t, store, storage.Key{Bucket: schemas, Name: name}, &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("s-" + name)},
			Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence: precedence, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"},
					}},
				}},
			},
		})
	}
	want("a fresh cluster", "s-global-default", "l-global-default")
	put("mine", "ada", "workload-low", 500)
	want("a schema comes", "s-mine", "l-workload-low")
	put("earlier", "ada", "workload-high", 500)
	want("another of the same precedence", "s-earlier", "l-workload-high")
	put("earlier", "ada", "not-there", 500)
	want("its level is not there", "s-mine", "l-workload-low")
	steptest.Put(t, store, storage.Key{Bucket: levels, Name: "not-there"}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "not-there", UID: "l-new"}})
	want("its level comes", "s-earlier", "l-new")
	put("earlier", "other-user", "not-there", 500)
	want("it is for others", "s-mine", "l-workload-low")
	steptest.Put(t, store, storage.Key{Bucket: schemas, Name: "mine"}, nil)
	want("a schema goes", "s-global-default", "l-global-default")
	asked.User = &auth.User{Name: "other"}
	want("nothing matches", "s-catch-all", "l-catch-all")
}

// TestClassifierReadsFreshSchemasAsOthers holds that the specs that are read once for all
// planes are those of the objects.
func TestClassifierReadsFreshSchemasAsOthers(t *testing.T) {
	t.Parallel()
	view := booted(t).Latest()
	n := 0
	for rec := range view.Ascend(schemas, "", "") {
		short, uid := specOf(rec), uidOf(rec)
		changed := &storage.Record{Key: rec.Key, Value: append([]byte(" "), rec.Value...)} // no template is like it
		if diff := cmp.Diff(specOf(changed), short); diff != "" || uidOf(changed) != uid || uid != types.UID("s-"+rec.Key.Name) {
			t.Errorf("%s: uid %s, spec %s", rec.Key, uid, diff)
		}
		n++
	}
	if n < 10 {
		t.Errorf("a fresh cluster has %d schemas", n)
	}
}

func BenchmarkClassify(b *testing.B) {
	c := NewClassifier(booted(b))
	for name, user := range map[string]*auth.User{
		"master": {Name: "admin", Groups: []string{auth.Masters, auth.Authenticated}},
		"user":   {Name: "ada", Groups: []string{"devs", auth.Authenticated}},
	} {
		asked := &auth.Attributes{User: user, Verb: "get", ResourceRequest: true, Version: "v1", Resource: "pods", Namespace: "x"}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if schema, _ := c.Classify(b.Context(), asked); schema == "" {
					b.Fatalf("%s belongs nowhere", user.Name)
				}
			}
		})
	}
}
