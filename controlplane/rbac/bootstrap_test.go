// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// TestBootstrapObjectsAreAsTheServerStoresThem: the prepared bytes are the
// encoding of the objects.
func TestBootstrapObjectsAreAsTheServerStoresThem(t *testing.T) {
	t.Parallel()
	empty := map[string]func() runtime.Object{
		roles: func() runtime.Object { return &rbacv1.Role{} }, clusterRoles: func() runtime.Object { return &rbacv1.ClusterRole{} },
		roleBindings: func() runtime.Object { return &rbacv1.RoleBinding{} }, clusterRoleBindings: func() runtime.Object { return &rbacv1.ClusterRoleBinding{} },
	}
	counts := map[string]int{}
	for i := range fresh().ordered {
		write := fresh().ordered[i].Write("11111111-2222-3333-4444-555555555555", "2026-01-02T03:04:05Z")
		counts[write.Key.Bucket]++
		if write.Value[write.Stamp-1] != '"' || write.Value[write.Stamp] != '"' || bytes.IndexByte(write.Value, '$') >= 0 {
			t.Fatalf("%s: stamp %d, %s", write.Key, write.Stamp, write.Value)
		}
		stamped := slices.Concat(write.Value[:write.Stamp], []byte("7"), write.Value[write.Stamp:])
		obj := empty[write.Key.Bucket]()
		decoder := json.NewDecoder(bytes.NewReader(stamped))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(obj); err != nil {
			t.Fatalf("%s: %v", write.Key, err)
		}
		again, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(stamped, again) {
			t.Errorf("%s (-prepared +encoded):\n%s", write.Key, cmp.Diff(string(stamped), string(again)))
		}
		meta := obj.(metav1.Object)
		if meta.GetUID() == "" || meta.GetResourceVersion() != "7" || meta.GetCreationTimestamp().Time.IsZero() || len(meta.GetManagedFields()) == 0 {
			t.Errorf("%s has no %+v", write.Key, meta)
		}
	}
	if diff := cmp.Diff(map[string]int{clusterRoles: 73, clusterRoleBindings: 54, roles: 7, roleBindings: 7}, counts); diff != "" {
		t.Error(diff)
	}
}

func TestBootstrapRecognizesItsObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot()
	b := Beginning{UID: func() types.UID { t.Error("asked for a uid"); return "" }, Now: time.Now()}
	if create, restore := Boot(w.view(), b); len(create)+len(restore) > 0 {
		t.Errorf("creates %d and restores %v", len(create), restore)
	}
	w.remove(clusterRoles, "view")
	b.UID = func() types.UID { return "u" }
	b.Nodes = true
	create, restore := Boot(w.view(), b)
	if len(create) != 2 || create[0].Key.Name != "view" || create[1].Key.Name != "steer:simulated-nodes" || len(restore) > 0 {
		t.Errorf("creates %v and restores %v", create, restore)
	}
}

// edit changes a stored object and returns what the next start asks for.
func (w world) edit(bucket, name string, change func(*object)) []step.Request {
	w.Helper()
	key := storage.Key{Bucket: bucket, Name: name}
	var o object
	if err := json.Unmarshal(w.view().Get(key).Value, &o); err != nil {
		w.Fatal(err)
	}
	change(&o)
	w.put(bucket, name, &o)
	_, restore := Boot(w.view(), Beginning{UID: func() types.UID { return "u" }, Now: time.Unix(0, 0)})
	return restore
}

func TestBootstrapRestoresMissingRules(t *testing.T) {
	t.Parallel()
	pods := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	for name, c := range map[string]struct {
		bucket, name string
		change       func(*object)
		check        func(*object) bool // of what is put back; nil: nothing is
	}{
		"a rule": {
			clusterRoles, "system:basic-user", func(o *object) { o.Rules = o.Rules[1:] },
			func(o *object) bool { return len(o.Rules) >= 2 },
		},
		"a verb, with another rule added": {
			clusterRoles, "system:discovery", func(o *object) { o.Rules = []rbacv1.PolicyRule{pods} },
			func(o *object) bool {
				return slices.ContainsFunc(o.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, pods.Resources) }) && len(o.Rules) > 1
			},
		},
		"a label": {
			roles, "kube-system/extension-apiserver-authentication-reader", func(o *object) { o.Labels = map[string]string{"mine": "yes"} },
			func(o *object) bool { return len(o.Labels) == 2 },
		},
		"a subject": {
			clusterRoleBindings, "cluster-admin", func(o *object) { o.Subjects = []rbacv1.Subject{userSubject("ann")} },
			func(o *object) bool { return len(o.Subjects) == 2 && o.Subjects[0].Name == "ann" },
		},
		"an aggregation": {
			clusterRoles, "admin", func(o *object) { o.AggregationRule, o.Rules = nil, nil },
			func(o *object) bool {
				return o.AggregationRule != nil && len(o.AggregationRule.ClusterRoleSelectors) == 1
			},
		},
		"more rules stay":       {clusterRoles, "system:basic-user", func(o *object) { o.Rules = append(o.Rules, pods) }, nil},
		"more subjects stay":    {clusterRoleBindings, "cluster-admin", func(o *object) { o.Subjects = append(o.Subjects, userSubject("ann")) }, nil},
		"gathered rules change": {clusterRoles, "admin", func(o *object) { o.Rules = nil }, nil},
		"not by itself": {
			clusterRoles, "system:basic-user",
			func(o *object) {
				o.Rules, o.Annotations = nil, map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"}
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.boot()
			restore := w.edit(c.bucket, c.name, c.change)
			if c.check == nil {
				if len(restore) > 0 {
					t.Errorf("asks for %s", restore[0].Body)
				}
				return
			}
			if len(restore) != 1 || restore[0].Method != http.MethodPut || restore[0].User != step.APIServer {
				t.Fatalf("asks for %v", restore)
			}
			var o object
			if err := json.Unmarshal(restore[0].Body, &o); err != nil || !c.check(&o) {
				t.Errorf("%v: puts %s", err, restore[0].Body)
			}
		})
	}
}

// TestBootstrapSplitsBindingsWithWhatTheyHave recreates a binding that was once a part of another.
func TestBootstrapSplitsBindingsWithWhatTheyHave(t *testing.T) {
	t.Parallel()
	const fixed = rbacv1.AutoUpdateAnnotationKey
	for name, c := range map[string]struct {
		change func(*object)
		want   []string // subjects
	}{
		"nothing has changed": {func(*object) {}, []string{"system:authenticated", "system:unauthenticated"}},
		"a subject was added": {
			func(o *object) { o.Subjects = append(o.Subjects, userSubject("ann")) },
			[]string{"system:authenticated", "ann", "system:unauthenticated"},
		},
		"it is to stay as it is": {
			func(o *object) { o.Annotations[fixed], o.Subjects = "false", []rbacv1.Subject{userSubject("ann")} },
			[]string{"ann"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.boot()
			w.remove(clusterRoleBindings, "system:public-info-viewer")
			w.edit(clusterRoleBindings, "system:discovery", func(o *object) {
				o.Labels["mine"] = "yes"
				c.change(o)
			})
			create, _ := Boot(w.view(), Beginning{UID: func() types.UID { return "u" }, Now: time.Unix(0, 0)})
			if len(create) != 1 {
				t.Fatalf("creates %v", create)
			}
			var got object
			if err := json.Unmarshal(stamped(create[0], "7"), &got); err != nil || got.UID != "u" || got.ResourceVersion != "7" {
				t.Fatalf("stores %s: %v", stamped(create[0], "7"), err)
			}
			var subjects []string
			for _, s := range got.Subjects {
				subjects = append(subjects, s.Name)
			}
			slices.Sort(subjects)
			slices.Sort(c.want)
			if !slices.Equal(subjects, c.want) || got.Labels["mine"] != "yes" || got.Name != "system:public-info-viewer" || got.RoleRef.Name != got.Name {
				t.Errorf("creates %s", create[0].Value)
			}
		})
	}
	w := newWorld(t)
	w.boot()
	w.remove(clusterRoleBindings, "system:public-info-viewer")
	w.remove(clusterRoleBindings, "system:discovery")
	create, _ := Boot(w.view(), Beginning{UID: func() types.UID { return "u" }, Now: time.Unix(0, 0)})
	if len(create) != 2 || !strings.Contains(string(create[0].Value)+string(create[1].Value), "system:unauthenticated") {
		t.Errorf("without the other binding it creates %v", create)
	}
}

// stamped is what the store keeps of a write that gets a revision.
func stamped(w storage.Write, revision string) []byte {
	return slices.Concat(w.Value[:w.Stamp], []byte(revision), w.Value[w.Stamp:])
}

func TestBootstrapReplacesBindingsOfAnotherRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot()
	restore := w.edit(clusterRoleBindings, "cluster-admin", func(o *object) { o.RoleRef.Name = "view" })
	if len(restore) != 2 || restore[0].Method != http.MethodDelete || restore[1].Method != http.MethodPut || !strings.Contains(string(restore[1].Body), `"name":"cluster-admin"}`) {
		t.Errorf("asks for %v", restore)
	}
	if strings.Contains(string(restore[1].Body), "uid") {
		t.Errorf("it is the same object: %s", restore[1].Body)
	}
}

// TestBuiltInControllersHaveRoles: who acts under a name of a full cluster finds
// its rights there.
func TestBuiltInControllersHaveRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot()
	z := New(w)
	for user, a := range map[string]auth.Attributes{
		step.GarbageCollector:    {Verb: "delete", Group: "example.com", Resource: "things", Namespace: "ns"},
		step.NamespaceController: {Verb: "update", Resource: "namespaces", Subresource: "finalize"},
		step.Scheduler:           {Verb: "create", Resource: "pods", Subresource: "binding", Namespace: "ns"},
		aggregator:               {Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
	} {
		a.User, a.ResourceRequest = &auth.User{Name: user}, true
		if decision, _, err := z.Authorize(t.Context(), &a); decision != auth.Allow || err != nil {
			t.Errorf("%s may not %s %s: %v", user, a.Verb, a.Resource, err)
		}
	}
}

func TestAggregatorLeavesAFreshClusterAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot()
	a := NewAggregator()
	a.Reset(w.view())
	if a.changed {
		t.Error("it wants to read the roles of a fresh cluster")
	}
	a.changed = true
	if requests := a.Sync(w.view(), time.Now()); len(requests) > 0 {
		t.Errorf("it asks for %s", requests[0].Body)
	}
}

func TestAggregatorCollectsSelectedRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := func(verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{"pods"}}
	}
	labelled := func(label string, rules ...rbacv1.PolicyRule) *object {
		return &object{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "yes"}}, Rules: rules}
	}
	all := &object{ObjectMeta: metav1.ObjectMeta{Name: "all", Labels: map[string]string{"a": "yes"}}, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"b": "yes"}}, {MatchLabels: map[string]string{"a": "yes"}}},
	}}
	w.put(clusterRoles, "all", all)
	w.put(clusterRoles, "z", labelled("a", rule("list"), rule("get"), rule("get")))
	w.put(clusterRoles, "y", labelled("a", rule("watch")))
	w.put(clusterRoles, "x", labelled("b", rule("get")))
	w.put(clusterRoles, "w", labelled("c", rule("delete")))
	a := NewAggregator()
	a.Reset(w.view())
	cursor, err := w.Watch(storage.Range{}, w.view().Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	// step returns the verbs that the aggregator wants for the role "all".
	step := func() []string {
		t.Helper()
		batch, err := cursor.Poll()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			steptest.Observe(a, e)
		}
		var out []string
		for _, r := range a.Sync(w.view(), time.Time{}) {
			var o object
			if err := json.Unmarshal(r.Body, &o); err != nil || !strings.HasSuffix(r.Path, "/clusterroles/all") || r.User != aggregator {
				t.Fatalf("%v: %s %s", err, r.Path, r.Body)
			}
			for _, rule := range o.Rules {
				out = append(out, rule.Verbs...)
			}
			a.Done(r, nil)
			all.Rules = o.Rules
			w.put(clusterRoles, "all", all)
		}
		return out
	}
	for _, c := range []struct {
		when   string
		change func()
		want   []string
	}{
		{"at first", func() {}, []string{"get", "watch", "list"}},
		{"nothing has changed", func() {}, nil},
		{"a role that is not selected changes", func() { w.put(clusterRoles, "w", labelled("c", rule("patch"))) }, nil},
		{"a label comes", func() { w.put(clusterRoles, "w", labelled("a", rule("patch"))) }, []string{"get", "patch", "watch", "list"}},
		{"a role goes", func() { w.remove(clusterRoles, "y") }, []string{"get", "patch", "list"}},
		{"a user edits the role", func() { all.Rules = nil; w.put(clusterRoles, "all", all) }, []string{"get", "patch", "list"}},
		{"another bucket changes", func() { w.put("pods", "x", &object{}) }, nil},
	} {
		c.change()
		if diff := cmp.Diff(c.want, step()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.when, diff)
		}
	}
	all.Rules = nil
	w.put(clusterRoles, "all", all)
	batch, err := cursor.Poll()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(a, e)
	}
	refused := a.Sync(w.view(), time.Time{})
	a.Done(refused[0], errors.New("refused"))
	if again := a.Sync(w.view(), time.Time{}); len(again) != 1 {
		t.Errorf("after a refusal it asks for %v", again)
	}
}
