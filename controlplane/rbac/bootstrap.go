// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	_ "embed"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// recorded is what a fresh cluster has; see oracle/cmd/bootstrap.
//
//go:embed bootstrap.txt
var recorded string

// template is one object of a fresh cluster, with what an index needs of it, read
// once for all control planes of the process.
type template struct {
	step.Template
	rules   func() []rbacv1.PolicyRule
	binding func() *binding
}

// templates are all objects of a fresh cluster, found by key and in order.
type templates struct {
	ordered []template
	byKey   map[storage.Key]*template
}

// fresh returns the objects of a fresh cluster.
var fresh = sync.OnceValue(func() *templates {
	out := &templates{byKey: map[storage.Key]*template{}}
	for _, t := range step.Templates(recorded) {
		out.ordered = append(out.ordered, template{Template: t})
	}
	for i := range out.ordered {
		t := &out.ordered[i]
		t.rules = sync.OnceValue(func() []rbacv1.PolicyRule { return parseRules([]byte(t.Text)) })
		t.binding = sync.OnceValue(func() *binding {
			namespace, _ := step.SplitName(t.Key.Name)
			return parseBinding(t.Key.Name, namespace, []byte(t.Text))
		})
		out.byKey[t.Key] = t
	}
	return out
})

// pristine returns the template of a record that is an object of a fresh cluster
// if it is unchanged, nil for any other.
func pristine(rec *storage.Record) *template {
	if t := fresh().byKey[rec.Key]; t != nil && t.Is(rec) {
		return t
	}
	return nil
}

// Beginning says how the objects of a fresh cluster are made.
type Beginning struct {
	// UID returns a new one.
	UID func() types.UID
	// Now is when they are created.
	Now time.Time
	// Nodes lets the group system:nodes do what nodes do. A full cluster has an
	// authorizer of its own for that.
	Nodes bool
}

// Boot compares a view with the roles and bindings of a fresh cluster. It returns
// the creations of those that are not there, and the requests that give back to
// others what has been taken from them. What has been added to them stays, and
// those with the annotation rbac.authorization.kubernetes.io/autoupdate=false stay
// as they are. A binding that was split off another one is created with what that has.
func Boot(view storage.View, b Beginning) (create []storage.Write, restore []step.Request) {
	at := b.Now.UTC().Format(time.RFC3339)
	look := func(t *template) {
		switch rec := view.Get(t.Key); {
		case rec == nil:
			create = append(create, t.inherit(view, t.Write(b.UID(), at)))
		case !t.Is(rec):
			restore = append(restore, t.restore(rec)...)
		}
	}
	all := fresh()
	for i := range all.ordered {
		look(&all.ordered[i])
	}
	if b.Nodes {
		key := storage.Key{Bucket: clusterRoleBindings, Name: "steer:simulated-nodes"}
		look(&template{Template: step.NewTemplate(key, simulatedNodes)})
	}
	return create, restore
}

// simulatedNodes binds the role of nodes to their group, in the form of what is
// recorded.
const simulatedNodes = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"steer:simulated-nodes",` +
	`"uid":"$UID","resourceVersion":"$RV","creationTimestamp":"$TIME","managedFields":[{"manager":"kube-apiserver","operation":"Update",` +
	`"apiVersion":"rbac.authorization.k8s.io/v1","time":"$TIME","fieldsType":"FieldsV1","fieldsV1":{"f:roleRef":{},"f:subjects":{}}}]},` +
	`"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:nodes"}],` +
	`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:node"}}`
