// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	_ "embed"
	"strings"
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

// Marks in the recorded objects for what every control plane has of its own.
const (
	uidMark      = "$UID"
	revisionMark = "$RV"
	timeMark     = "$TIME"
)

// template is one object of a fresh cluster, as it is stored.
type template struct {
	key storage.Key
	// text with its marks, in the order of which there is no other: uid, revision,
	// then times.
	text string
	// parts returns the text between the marks, found once for all control planes
	// of the process.
	parts func() templateParts
	// What an index needs of it, read once for all control planes of the process.
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
	for line := range strings.Lines(recorded) {
		bucket, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, text, ok := strings.Cut(rest, " "); ok && bucket != "#" {
			out.ordered = append(out.ordered, template{key: storage.Key{Bucket: bucket, Name: name}, text: text})
		}
	}
	for i := range out.ordered {
		t := &out.ordered[i]
		t.parts = sync.OnceValue(t.cut)
		t.rules = sync.OnceValue(func() []rbacv1.PolicyRule { return parseRules([]byte(t.text)) })
		t.binding = sync.OnceValue(func() *binding {
			namespace, _ := step.SplitName(t.key.Name)
			return parseBinding(t.key.Name, namespace, []byte(t.text))
		})
		out.byKey[t.key] = t
	}
	return out
})

// templateParts are the text of a template before the uid, before the revision,
// and after it, cut at the times.
type templateParts struct {
	before, between string
	after           []string
}

func (t *template) cut() templateParts {
	before, rest, _ := strings.Cut(t.text, uidMark)
	between, after, _ := strings.Cut(rest, revisionMark)
	return templateParts{before: before, between: between, after: strings.Split(after, timeMark)}
}

// write returns the creation of the object.
func (t *template) write(uid types.UID, now string) storage.Write {
	p := t.parts()
	value := make([]byte, 0, len(t.text)-len(uidMark)-len(revisionMark)+len(uid)+(len(p.after)-1)*(len(now)-len(timeMark)))
	value = append(value, p.before...)
	value = append(value, uid...)
	value = append(value, p.between...)
	stamp := len(value)
	for i, text := range p.after {
		if i > 0 {
			value = append(value, now...)
		}
		value = append(value, text...)
	}
	return storage.Write{Key: t.key, Value: value, Stamp: stamp, Expect: storage.Absent}
}

// is tells whether a record is the object as it was created.
func (t *template) is(rec *storage.Record) bool {
	value, text := rec.Value, t.text
	for {
		literal, rest, marked := strings.Cut(text, "$")
		if !marked {
			return string(value) == text
		}
		if len(value) < len(literal) || string(value[:len(literal)]) != literal {
			return false
		}
		// A mark and what stands for it end with the string that they are in.
		end, markEnd := bytes.IndexByte(value[len(literal):], '"'), strings.IndexByte(rest, '"')
		if end < 0 || markEnd < 0 {
			return false
		}
		value, text = value[len(literal)+end:], rest[markEnd:]
	}
}

// pristine returns the template of a record that is an object of a fresh cluster
// which nobody has changed, nil for any other.
func pristine(rec *storage.Record) *template {
	if t := fresh().byKey[rec.Key]; t != nil && t.is(rec) {
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
// as they are.
func Boot(view storage.View, b Beginning) (create []storage.Write, restore []step.Request) {
	at := b.Now.UTC().Format(time.RFC3339)
	look := func(t *template) {
		switch rec := view.Get(t.key); {
		case rec == nil:
			create = append(create, t.write(b.UID(), at))
		case !t.is(rec):
			restore = append(restore, t.restore(rec)...)
		}
	}
	all := fresh()
	for i := range all.ordered {
		look(&all.ordered[i])
	}
	if b.Nodes {
		nodes := &template{key: storage.Key{Bucket: clusterRoleBindings, Name: "steer:simulated-nodes"}, text: simulatedNodes}
		nodes.parts = nodes.cut
		look(nodes)
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
