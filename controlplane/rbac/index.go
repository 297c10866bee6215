// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/storage"
)

// The buckets that hold roles and bindings.
const (
	roles               = rbacv1.GroupName + "/roles"
	roleBindings        = rbacv1.GroupName + "/rolebindings"
	clusterRoles        = rbacv1.GroupName + "/clusterroles"
	clusterRoleBindings = rbacv1.GroupName + "/clusterrolebindings"
)

// accountPrefix precedes namespace and name in the user name of a service
// account.
const accountPrefix = "system:serviceaccount:"

// index is what the roles and bindings of one state of the store say.
type index struct {
	cluster grants

	mu         sync.Mutex
	namespaces map[string]grants
	// What has been read of records, to be taken over by the next index.
	roles    map[storage.Key]*role
	bindings map[*storage.Record]*binding
}

// role is one version of a Role or ClusterRole, or its absence.
type role struct {
	record *storage.Record // nil: there is none
	rules  func() []rbacv1.PolicyRule
	err    error
}

// binding is one version of a RoleBinding or ClusterRoleBinding.
type binding struct {
	name, namespace string
	ref             rbacv1.RoleRef
	subjects        []rbacv1.Subject
	reasons         []string // by subject
}

// grant holds the subjects and the role of one binding.
type grant struct {
	binding *binding
	role    *role
}

// grants finds the grants for a subject. A service account is found as the user
// that it is.
type grants struct {
	users, groups map[string][]grant
}

// newIndex reads the bindings of all namespaces from a view; old may be nil, or
// an index whose readings are taken over.
func newIndex(view storage.View, old *index) *index {
	ix := &index{
		namespaces: map[string]grants{},
		roles:      map[storage.Key]*role{}, bindings: map[*storage.Record]*binding{},
	}
	if old == nil {
		old = &index{}
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	ix.cluster = ix.read(view, clusterRoleBindings, "", old)
	// Of the namespaces, only those that have been asked about are read again.
	for namespace := range old.namespaces {
		ix.namespaces[namespace] = ix.read(view, roleBindings, namespace, old)
	}
	return ix
}

// in returns the grants of a namespace. A view that has newer ones than the index
// does no harm: the index is on its way out.
func (ix *index) in(store storage.Viewer, namespace string) grants {
	ix.mu.Lock()
	g, known := ix.namespaces[namespace]
	ix.mu.Unlock()
	if known {
		return g
	}
	view := store.Latest()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if g, known = ix.namespaces[namespace]; known {
		return g
	}
	g = ix.read(view, roleBindings, namespace, ix)
	if len(g.users)+len(g.groups) > 0 { // names that do not exist leave nothing behind
		ix.namespaces[namespace] = g
	}
	return g
}

// read indexes the bindings of a namespace, or of the cluster for an empty one.
func (ix *index) read(view storage.View, bucket, namespace string, old *index) grants {
	g := grants{users: map[string][]grant{}, groups: map[string][]grant{}}
	prefix := ""
	if namespace != "" {
		prefix = namespace + "/"
	}
	for rec := range view.Ascend(bucket, prefix, "") {
		b := old.bindings[rec]
		if b == nil {
			if b = readBinding(rec, namespace); b == nil {
				continue
			}
		}
		ix.bindings[rec] = b
		found := grant{binding: b, role: ix.role(view, b.ref, namespace, old)}
		for i := range b.subjects {
			switch s := &b.subjects[i]; s.Kind {
			case rbacv1.UserKind:
				add(g.users, s.Name, found)
			case rbacv1.GroupKind:
				add(g.groups, s.Name, found)
			case rbacv1.ServiceAccountKind:
				if home := cmp.Or(s.Namespace, namespace); home != "" {
					add(g.users, accountPrefix+home+":"+s.Name, found)
				}
			}
		}
	}
	return g
}

// add lists a grant once under a name.
func add(to map[string][]grant, name string, g grant) {
	list := to[name]
	if len(list) == 0 || list[len(list)-1].binding != g.binding {
		to[name] = append(list, g)
	}
}

// role returns what a binding in a namespace refers to.
func (ix *index) role(view storage.View, ref rbacv1.RoleRef, namespace string, old *index) *role {
	key := storage.Key{Bucket: clusterRoles, Name: ref.Name}
	resource := "clusterrole"
	switch ref.Kind {
	case "ClusterRole":
	case "Role":
		key, resource = storage.Key{Bucket: roles, Name: namespace + "/" + ref.Name}, "role"
	default:
		return &role{err: fmt.Errorf("unsupported role reference kind: %q", ref.Kind)}
	}
	if r := ix.roles[key]; r != nil {
		return r
	}
	rec := view.Get(key)
	r := old.roles[key]
	switch {
	case r != nil && r.record == rec:
	case rec == nil:
		r = &role{err: absentError{resource, ref.Name}}
	default:
		r = &role{record: rec, rules: sync.OnceValue(func() []rbacv1.PolicyRule { return readRules(rec) })}
	}
	ix.roles[key] = r
	return r
}

// absentError reports that a binding refers to a role that there is not.
type absentError struct {
	resource string // in the singular
	name     string
}

// Error names the role as the authorizer does.
func (e absentError) Error() string { return notFound(e.resource, e.name).Error() }

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}, name)
}

// readRules returns the rules of a stored role; one that cannot be read has
// none.
func readRules(rec *storage.Record) []rbacv1.PolicyRule {
	if t := pristine(rec); t != nil {
		return t.rules()
	}
	return parseRules(rec.Value)
}

func parseRules(role []byte) []rbacv1.PolicyRule {
	var content struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if json.Unmarshal(role, &content) != nil {
		return nil
	}
	return content.Rules
}

// readBinding returns a stored binding, or nil for one that cannot be read.
func readBinding(rec *storage.Record, namespace string) *binding {
	if t := pristine(rec); t != nil {
		return t.binding()
	}
	return parseBinding(rec.Key.Name, namespace, rec.Value)
}

func parseBinding(key, namespace string, value []byte) *binding {
	var content struct {
		Subjects []rbacv1.Subject `json:"subjects"`
		RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	}
	if json.Unmarshal(value, &content) != nil {
		return nil
	}
	b := &binding{name: key, namespace: namespace, ref: content.RoleRef, subjects: content.Subjects}
	kind, name := "ClusterRoleBinding", b.name
	if namespace != "" {
		b.name = b.name[len(namespace)+1:]
		kind, name = "RoleBinding", b.name+"/"+namespace
	}
	for i := range b.subjects {
		s := &b.subjects[i]
		subject := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			subject += "/" + cmp.Or(s.Namespace, namespace)
		}
		b.reasons = append(b.reasons, fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, name, b.ref.Kind, b.ref.Name, s.Kind, subject))
	}
	return b
}

// of appends the grants of a user to a list, in the order of the bindings' names
// and each once.
func (g *grants) of(user *auth.User, list []grant) []grant {
	list = append(list, g.users[user.Name]...)
	for _, group := range user.Groups {
		list = append(list, g.groups[group]...)
	}
	slices.SortFunc(list, func(a, b grant) int { return cmp.Compare(a.binding.name, b.binding.name) })
	return slices.CompactFunc(list, func(a, b grant) bool { return a.binding == b.binding })
}

// reason tells by which subject of the binding a user has a grant.
func (b *binding) reason(user *auth.User) string {
	for i := range b.subjects {
		applies := false
		switch s := &b.subjects[i]; s.Kind {
		case rbacv1.UserKind:
			applies = s.Name == user.Name
		case rbacv1.GroupKind:
			applies = user.In(s.Name)
		case rbacv1.ServiceAccountKind:
			home := cmp.Or(s.Namespace, b.namespace)
			applies = home != "" && user.Name == accountPrefix+home+":"+s.Name
		}
		if applies {
			return b.reasons[i]
		}
	}
	return ""
}
