// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package parts_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kuberbac "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/rbac"
	"github.com/steer-dev/steer/storage"
)

// cluster is roles and bindings as both authorizers read them.
type cluster struct {
	store    *storage.Memory
	roles    map[string]*rbacv1.Role // by namespace/name
	wide     map[string]*rbacv1.ClusterRole
	bindings map[string]*rbacv1.RoleBinding
	bound    map[string]*rbacv1.ClusterRoleBinding
}

func (c *cluster) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	if role := c.roles[namespace+"/"+name]; role != nil {
		return role, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "role"}, name)
}

func (c *cluster) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	if role := c.wide[name]; role != nil {
		return role, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrole"}, name)
}

func (c *cluster) ListRoleBindings(_ context.Context, namespace string) (list []*rbacv1.RoleBinding, _ error) {
	for _, key := range sorted(c.bindings) {
		if strings.HasPrefix(key, namespace+"/") {
			list = append(list, c.bindings[key])
		}
	}
	return list, nil
}

func (c *cluster) ListClusterRoleBindings(context.Context) (list []*rbacv1.ClusterRoleBinding, _ error) {
	for _, key := range sorted(c.bound) {
		list = append(list, c.bound[key])
	}
	return list, nil
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// put stores an object for the authorizer under test.
func (c *cluster) put(t testing.TB, resource, name string, object any) {
	t.Helper()
	value, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	key := storage.Key{Bucket: rbacv1.GroupName + "/" + resource, Name: name}
	if _, err := c.store.Commit(t.Context(), storage.Write{Key: key, Value: value, Expect: storage.AnyRevision}); err != nil {
		t.Fatal(err)
	}
}

// chooser takes what it chooses from a source: random numbers, or what a fuzzer
// has come up with.
type chooser struct{ next func(n int) int }

// fromBytes chooses by bytes; the first choices are what is left at the end.
func fromBytes(data []byte) chooser {
	return chooser{func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % n
	}}
}

func (c chooser) of(from ...string) string { return from[c.next(len(from))] }

func (c chooser) some(from ...string) (list []string) {
	for range c.next(4) {
		list = append(list, c.of(from...))
	}
	return list
}

func (c chooser) rules() (list []rbacv1.PolicyRule) {
	for range 1 + c.next(3) {
		list = append(list, rbacv1.PolicyRule{
			Verbs: c.some("get", "*", "list", "", "GET"), APIGroups: c.some("", "*", "apps", "app"),
			Resources:     c.some("pods", "pods/log", "*/log", "*", "pods/*", "*/*", "/log", "pods/", "log", "", "*/"),
			ResourceNames: c.some("x", "y", "*", ""), NonResourceURLs: c.some("/a", "/a/*", "*", "/a*", "/a**", "/", "/a/b", "", "/*"),
		})
	}
	return list
}

func (c chooser) subjects() (list []rbacv1.Subject) {
	for range 1 + c.next(3) {
		list = append(list, rbacv1.Subject{
			Kind: c.of("User", "Group", "ServiceAccount", "User", "Group", "Robot"), Name: c.of("ann", "dev", "bob", "bot", "", "system:serviceaccount:a:bot"),
			Namespace: c.of("", "a", "b"), APIGroup: c.of(rbacv1.GroupName, ""),
		})
	}
	return list
}

func (c chooser) cluster(t testing.TB) *cluster {
	t.Helper()
	k := &cluster{
		store: storage.NewMemory(storage.MemoryOptions{}), roles: map[string]*rbacv1.Role{}, wide: map[string]*rbacv1.ClusterRole{},
		bindings: map[string]*rbacv1.RoleBinding{}, bound: map[string]*rbacv1.ClusterRoleBinding{},
	}
	ref := func() rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: c.of("ClusterRole", "Role", "ClusterRole", "Role", "Thing"), Name: c.of("r", "s", "t", "r", "gone")}
	}
	for range 6 + c.next(6) {
		namespace, name := c.of("a", "b"), c.of("r", "s", "t")
		key, meta := namespace+"/"+name, metav1.ObjectMeta{Name: name, Namespace: namespace}
		switch c.next(2) {
		case 0:
			k.roles[key] = &rbacv1.Role{ObjectMeta: meta, Rules: c.rules()}
			k.put(t, "roles", key, k.roles[key])
		case 1:
			k.bindings[key] = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref(), Subjects: c.subjects()}
			k.put(t, "rolebindings", key, k.bindings[key])
		}
		meta.Namespace = ""
		switch c.next(2) {
		case 0:
			k.wide[name] = &rbacv1.ClusterRole{ObjectMeta: meta, Rules: c.rules()}
			k.put(t, "clusterroles", name, k.wide[name])
		case 1:
			k.bound[name] = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref(), Subjects: c.subjects()}
			k.put(t, "clusterrolebindings", name, k.bound[name])
		}
	}
	return k
}

func (c chooser) request() *auth.Attributes {
	return &auth.Attributes{
		User: &auth.User{Name: c.of("ann", "bob", "system:serviceaccount:a:bot", "system:serviceaccount::bot", ""), Groups: c.some("dev", "bob", "")},
		Verb: c.of("get", "list", "*", ""), Path: c.of("/a", "/a/b", "/", "/ab", "/a/*", "", "a"), ResourceRequest: c.next(3) > 0,
		Group: c.of("", "apps", "*"), Version: "v1", Resource: c.of("pods", "pods/log", "*", "", "log"), Subresource: c.of("", "log", "*", "/"),
		Namespace: c.of("a", "b", ""), Name: c.of("", "x", "*"),
	}
}

// sameVerdict asks both authorizers.
func sameVerdict(t *testing.T, c chooser, requests int) (allowed int) {
	t.Helper()
	k := c.cluster(t)
	ours, theirs := rbac.New(k.store), kuberbac.New(k, k, k, k)
	for range requests {
		a := c.request()
		decision, reason, err := ours.Authorize(t.Context(), a)
		want, wantReason, wantErr := theirs.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: a.User.Name, Groups: a.User.Groups}, Verb: a.Verb, Path: a.Path, ResourceRequest: a.ResourceRequest,
			APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		})
		if wantReason != "" && want != authorizer.DecisionAllow {
			wantReason = "rbac: " + wantReason // as the union of all authorizers names it
		}
		if (decision == auth.Allow) != (want == authorizer.DecisionAllow) || reason != wantReason || (err == nil) != (wantErr == nil) {
			objects, _ := json.MarshalIndent([]any{k.roles, k.wide, k.bindings, k.bound}, "", " ")
			t.Fatalf("%+v of %+v: %v %q %v, want %v %q %v\n%s", *a, *a.User, decision, reason, err, want, wantReason, wantErr, objects)
		}
		if decision == auth.Allow {
			allowed++
		}
	}
	return allowed
}

func TestVerdictsAndReasonsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	allowed, asked := 0, 0
	for range 10_000 {
		allowed += sameVerdict(t, chooser{random.IntN}, 10)
		asked += 10
	}
	if allowed < asked/100 {
		t.Errorf("only %d of %d requests were allowed: the generator misses the point", allowed, asked)
	}
	t.Logf("%d of %d requests were allowed", allowed, asked)
}

func FuzzVerdicts(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		seed := make([]byte, 200)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameVerdict(t, fromBytes(data), 5) })
}
