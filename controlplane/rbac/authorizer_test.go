// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/storage"
)

// world is a store with roles and bindings.
type world struct {
	testing.TB
	*storage.Memory
}

func newWorld(t testing.TB) world { return world{t, storage.NewMemory(storage.MemoryOptions{})} }

// put stores an object under the kind that its bucket holds.
func (w world) put(bucket, name string, obj any) {
	w.Helper()
	value, err := json.Marshal(obj)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.Commit(context.Background(), storage.Write{Key: storage.Key{Bucket: bucket, Name: name}, Value: value, Expect: storage.AnyRevision}); err != nil {
		w.Fatal(err)
	}
}

func (w world) remove(bucket, name string) {
	w.Helper()
	if _, err := w.Commit(context.Background(), storage.Write{Key: storage.Key{Bucket: bucket, Name: name}, Expect: storage.AnyRevision}); err != nil {
		w.Fatal(err)
	}
}

func (w world) view() storage.View {
	w.Helper()
	v, err := w.View(context.Background(), 0)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// boot creates the objects of a fresh cluster.
func (w world) boot() {
	w.Helper()
	n := 0
	create, restore := Boot(w.view(), Beginning{UID: func() types.UID { n++; return types.UID(fmt.Sprintf("%036d", n)) }, Now: time.Unix(1e9, 0)})
	if len(restore) > 0 {
		w.Fatalf("an empty store is asked to restore %v", restore)
	}
	for _, write := range create {
		if _, err := w.Commit(context.Background(), write); err != nil {
			w.Fatal(err)
		}
	}
}

func rulesOf(rules ...rbacv1.PolicyRule) *object { return &object{Rules: rules} }

func bindingOf(kind, name string, subjects ...rbacv1.Subject) *object {
	return &object{RoleRef: &rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, Subjects: subjects}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}
}

func TestAuthorizerFollowsEveryWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := New(w)
	ask := func() string {
		t.Helper()
		decision, reason, err := z.Authorize(t.Context(), &auth.Attributes{
			User: &auth.User{Name: "ann"}, Verb: "get", ResourceRequest: true, Version: "v1", Resource: "pods", Namespace: "ns",
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(decision == auth.Allow, " ", reason)
	}
	const allowed = `true RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "ann"`
	equal := func(when, want string) {
		t.Helper()
		if got := ask(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	equal("nothing", "false ")
	w.put(roleBindings, "ns/b", bindingOf("Role", "r", userSubject("ann")))
	equal("no role", `false rbac: RBAC: role.rbac.authorization.k8s.io "r" not found`)
	w.put(roles, "ns/r", rulesOf(rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}))
	equal("bound", allowed)
	w.put("pods", "ns/p", &object{})
	equal("another bucket has changed", allowed)
	w.put(roles, "ns/r", rulesOf(rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}}))
	equal("another rule", "false ")
	w.put(roles, "other/r", rulesOf(rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}))
	equal("a role of another namespace", "false ")
	w.put(clusterRoles, "c", rulesOf(rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}))
	w.put(clusterRoleBindings, "b", bindingOf("ClusterRole", "c", userSubject("bob"), userSubject("ann")))
	equal("of the cluster", `true RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "c" to User "ann"`)
	w.put(clusterRoleBindings, "b", bindingOf("ClusterRole", "c", userSubject("bob")))
	equal("not any more", "false ")
	w.remove(roleBindings, "ns/b")
	equal("unbound", "false ")
	w.put(roleBindings, "ns/b", bindingOf("Thing", "c", userSubject("ann")))
	equal("unknown kind", `false rbac: RBAC: unsupported role reference kind: "Thing"`)
}

func TestAuthorizerNamesTheFirstSubjectThatApplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(clusterRoles, "c", rulesOf(rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}))
	w.put(clusterRoleBindings, "b", bindingOf("ClusterRole", "c",
		rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"}, // without a namespace it matches no account
		rbacv1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "ns"},
		rbacv1.Subject{Kind: "Group", Name: "g"}, userSubject("ann")))
	z := New(w)
	for name, c := range map[string]struct {
		user auth.User
		want string
	}{
		"group before user": {auth.User{Name: "ann", Groups: []string{"h", "g"}}, `Group "g"`},
		"user":              {auth.User{Name: "ann"}, `User "ann"`},
		"account":           {auth.User{Name: "system:serviceaccount:ns:robot"}, `ServiceAccount "robot/ns"`},
		"account elsewhere": {auth.User{Name: "system:serviceaccount:other:robot"}, ""},
	} {
		_, reason, err := z.Authorize(t.Context(), &auth.Attributes{User: &c.user, Verb: "get", Path: "/x"})
		if err != nil || !strings.HasSuffix(reason, c.want) || (c.want == "") != (reason == "") {
			t.Errorf("%s: %q, %v, want ... %s", name, reason, err, c.want)
		}
	}
}

// TestMatcherAgreesWithExpansion compares the matcher with a naive one: a rule
// covers a request if one of all the single permissions that it stands for is
// it.
func TestMatcherAgreesWithExpansion(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	words := func(from ...string) []string {
		var out []string
		for range random.IntN(3) {
			out = append(out, from[random.IntN(len(from))])
		}
		return out
	}
	matched := 0
	for range 200_000 {
		rule := rbacv1.PolicyRule{
			Verbs: words("get", "list", "*"), APIGroups: words("", "apps", "*"),
			Resources:     words("pods", "pods/scale", "*/scale", "*", "pods/", "scale", "a/scale"),
			ResourceNames: words("x", "y", "*", ""), NonResourceURLs: words("/a", "/a/*", "*", "/a*", "/a/**", "/"),
		}
		a := &auth.Attributes{
			Verb: pick(random, "get", "list", "*"), ResourceRequest: random.IntN(2) == 0,
			Group: pick(random, "", "apps"), Resource: pick(random, "pods", "deployments", "pods/scale", "a"),
			Subresource: pick(random, "", "scale", "status"), Name: pick(random, "", "x", "z"), Path: pick(random, "/a", "/a/b", "/", "/ab", "/a/*"),
		}
		want := naive(&rule, a)
		if want {
			matched++
		}
		if got := allows(&rule, a); got != want {
			t.Fatalf("%v for %+v: %v, want %v", rule, a, got, want)
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matches: the generator misses the point", matched)
	}
}

func pick(random *rand.Rand, from ...string) string { return from[random.IntN(len(from))] }

// naive is what the documentation says of rules, word by word.
func naive(rule *rbacv1.PolicyRule, a *auth.Attributes) bool {
	verb := slices.Contains(rule.Verbs, a.Verb) || slices.Contains(rule.Verbs, "*")
	if !a.ResourceRequest {
		for _, url := range rule.NonResourceURLs {
			prefix := strings.TrimRight(url, "*")
			if verb && (url == a.Path || url != prefix && strings.HasPrefix(a.Path, prefix)) {
				return true
			}
		}
		return false
	}
	full := a.Resource
	candidates := []string{"*"}
	if a.Subresource != "" {
		full += "/" + a.Subresource
		candidates = append(candidates, "*/"+a.Subresource)
	}
	candidates = append(candidates, full)
	resource := slices.ContainsFunc(candidates, func(c string) bool { return slices.Contains(rule.Resources, c) })
	group := slices.Contains(rule.APIGroups, a.Group) || slices.Contains(rule.APIGroups, "*")
	name := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name)
	return verb && group && resource && name
}

// TestCoverageAllowsNothingNew: a user with rules that cover others may do
// everything that those allow.
func TestCoverageAllowsNothingNew(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	words := func(least int, from ...string) []string {
		var out []string
		for range least + random.IntN(3) {
			out = append(out, from[random.IntN(len(from))])
		}
		return out
	}
	rule := func() rbacv1.PolicyRule {
		if random.IntN(4) == 0 {
			return rbacv1.PolicyRule{Verbs: words(1, "get", "post", "*"), NonResourceURLs: words(1, "/a", "/a/*", "*", "/a/b")}
		}
		return rbacv1.PolicyRule{
			Verbs: words(1, "get", "list", "*"), APIGroups: words(1, "", "apps", "*"),
			Resources: words(1, "pods", "pods/scale", "*/scale", "*"), ResourceNames: words(0, "x", "y"),
		}
	}
	covered := 0
	for range 50_000 {
		held, wanted := []rbacv1.PolicyRule{rule(), rule()}, rule()
		if len(missing(held, []rbacv1.PolicyRule{wanted})) > 0 {
			continue
		}
		covered++
		for range 20 {
			a := &auth.Attributes{
				Verb: pick(random, "get", "list", "post"), ResourceRequest: random.IntN(4) > 0,
				Group: pick(random, "", "apps", "batch"), Resource: pick(random, "pods", "jobs"),
				Subresource: pick(random, "", "scale"), Name: pick(random, "", "x", "y", "z"), Path: pick(random, "/a", "/a/b", "/a/c", "/"),
			}
			if allows(&wanted, a) && !allows(&held[0], a) && !allows(&held[1], a) {
				t.Fatalf("%v cover %v, but do not allow %+v", held, wanted, a)
			}
		}
	}
	if covered < 500 {
		t.Errorf("only %d covered rules: the generator misses the point", covered)
	}
}

// TestIndexEqualsRebuild changes roles and bindings at random and
// compares with an authorizer that knows nothing yet.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := New(w)
	random := rand.New(rand.NewPCG(5, 6))
	subject := func() rbacv1.Subject {
		return []rbacv1.Subject{
			userSubject("ann"), userSubject("bob"), {Kind: "Group", Name: "g"},
			{Kind: "ServiceAccount", Name: "bot"}, {Kind: "ServiceAccount", Name: "bot", Namespace: "a"},
		}[random.IntN(5)]
	}
	users := []*auth.User{{Name: "ann"}, {Name: "bob", Groups: []string{"g"}}, {Name: "system:serviceaccount:a:bot"}}
	allowed := 0
	for range 3000 {
		bucket := pick(random, roles, clusterRoles, roleBindings, clusterRoleBindings, "pods")
		name := pick(random, "r", "s")
		if bucket == roles || bucket == roleBindings {
			name = pick(random, "a/", "b/") + name
		}
		switch {
		case random.IntN(4) == 0 && w.view().Get(storage.Key{Bucket: bucket, Name: name}) != nil:
			w.remove(bucket, name)
		case strings.HasSuffix(bucket, "bindings"):
			w.put(bucket, name, bindingOf(pick(random, "Role", "ClusterRole"), pick(random, "r", "s"), subject(), subject()))
		default:
			w.put(bucket, name, rulesOf(rbacv1.PolicyRule{Verbs: []string{pick(random, "get", "list")}, APIGroups: []string{""}, Resources: []string{"pods"}}))
		}
		for _, user := range users {
			a := &auth.Attributes{User: user, Verb: pick(random, "get", "list"), ResourceRequest: true, Resource: "pods", Namespace: pick(random, "", "a", "b")}
			decision, reason, err := z.Authorize(t.Context(), a)
			freshDecision, freshReason, freshErr := New(w).Authorize(t.Context(), a)
			if err != nil || freshErr != nil || decision != freshDecision || reason != freshReason {
				t.Fatalf("%+v: %v %q %v, want %v %q %v", a, decision, reason, err, freshDecision, freshReason, freshErr)
			}
			if decision == auth.Allow {
				allowed++
			}
		}
	}
	if allowed < 500 {
		t.Errorf("only %d allowed: the generator misses the point", allowed)
	}
}

// TestAuthorizersAreShared is for the race detector: many read while roles
// are written.
func TestAuthorizersAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot()
	z := New(w)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				user := &auth.User{Name: "ann", Groups: []string{auth.Authenticated}}
				_, _, err := z.Authorize(context.Background(), &auth.Attributes{
					User: user, Verb: "get", ResourceRequest: true, Resource: "pods", Namespace: fmt.Sprint(n % 3),
				})
				if err != nil {
					t.Error(err)
				}
				if i == 0 {
					w.put(roleBindings, fmt.Sprintf("%d/b", n%3), bindingOf("ClusterRole", "view", userSubject("ann")))
				}
			}
		})
	}
	all.Wait()
}

func TestRulesAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(clusterRoles, "c", rulesOf(
		rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}))
	w.put(clusterRoleBindings, "b", bindingOf("ClusterRole", "c", userSubject("ann")))
	w.put(roleBindings, "ns/b", bindingOf("Role", "gone", userSubject("ann")))
	rules, err := New(w).Rules(t.Context(), &auth.User{Name: "ann"}, "ns")
	if err == nil || err.Error() != `role.rbac.authorization.k8s.io "gone" not found` {
		t.Errorf("error %v", err)
	}
	if len(rules.Resource) != 1 || len(rules.NonResource) != 1 || rules.Incomplete {
		t.Errorf("%+v", rules)
	}
}

func TestEscalationErrorsListTheMissingRules(t *testing.T) {
	t.Parallel()
	lacking := missing(nil, []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, ResourceNames: []string{"x"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/b", "/a"}},
	})
	want := strings.Join([]string{
		`{APIGroups:[""], Resources:["pods"], ResourceNames:["x"], Verbs:["get" "list"]}`,
		`{APIGroups:["apps"], Resources:["pods"], ResourceNames:["x"], Verbs:["get" "list"]}`,
		`{NonResourceURLs:["/a"], Verbs:["get"]}`,
		`{NonResourceURLs:["/b"], Verbs:["get"]}`,
	}, "\n")
	if diff := cmp.Diff(want, describe(lacking)); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkAuthorize is the price of a decision for a user with the rights of a
// usual user and one binding of their own.
func BenchmarkAuthorize(b *testing.B) {
	for _, c := range []struct {
		name    string
		writing bool
	}{{"quiet", false}, {"after a write elsewhere", true}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b)
			w.boot()
			w.put(roleBindings, "ns/b", bindingOf("ClusterRole", "edit", userSubject("ann")))
			z := New(w)
			a := &auth.Attributes{
				User: &auth.User{Name: "ann", Groups: []string{"dev", auth.Authenticated}},
				Verb: "update", ResourceRequest: true, Group: "apps", Version: "v1", Resource: "deployments", Namespace: "ns", Name: "d",
			}
			b.ReportAllocs()
			for b.Loop() {
				if c.writing {
					b.StopTimer()
					w.put("pods", "ns/p", &object{})
					b.StartTimer()
				}
				if decision, _, err := z.Authorize(context.Background(), a); decision != auth.Allow || err != nil {
					b.Fatal(decision, err)
				}
			}
		})
	}
}

// slowViews is a store whose states are read once release is closed.
type slowViews struct {
	storage.Viewer
	release chan struct{}
}

func (s slowViews) Latest() storage.View {
	<-s.release
	return s.Viewer.Latest()
}

func TestAuthorizerHoldsNoLockWhileTheStoreIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newWorld(t)
		ix, err := New(store).index.Get()
		if err != nil {
			t.Fatal(err)
		}
		slow, read := slowViews{store, make(chan struct{})}, make(chan struct{})
		go func() {
			defer close(read)
			ix.in(slow, "b")
		}()
		synctest.Wait()
		if !ix.mu.TryLock() {
			t.Fatal("the lock of the namespaces is held while one is read")
		}
		ix.mu.Unlock()
		close(slow.release)
		<-read
	})
}
