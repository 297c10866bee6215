// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package listing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/cache/internal/listing"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// newStore returns a store of 300 Pods, a third of them with the label app=web.
func newStore(t *testing.T) *store.Store {
	t.Helper()
	s := store.New("")
	var deltas []store.Delta
	for i := range 300 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns", i%2), Name: fmt.Sprintf("p%03d", i), ResourceVersion: "1"}}
		if i%3 == 0 {
			p.Labels = map[string]string{"app": "web"}
		}
		p.Spec.NodeName = fmt.Sprint("node", i%5)
		deltas = append(deltas, store.Delta{Op: store.Put, Object: p})
	}
	s.Commit(deltas, nil)
	if err := s.AddIndex(listing.FieldIndex("spec.nodeName"), func(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} }); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuerySelectsAsTheListOptionsSay(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	field := func(text string) fields.Selector { return fields.ParseSelectorOrDie(text) }
	label := func(text string) labels.Selector {
		out, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	last := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "p289"}}
	for name, test := range map[string]struct {
		options client.ListOptions
		want    int
	}{
		"all":                  {client.ListOptions{}, 300},
		"a namespace":          {client.ListOptions{Namespace: "ns1"}, 150},
		"a label":              {client.ListOptions{LabelSelector: label("app=web")}, 100},
		"a label that is not":  {client.ListOptions{LabelSelector: label("app!=web"), Namespace: "ns0"}, 100},
		"a field":              {client.ListOptions{FieldSelector: field("spec.nodeName=node2")}, 60},
		"a field that is not":  {client.ListOptions{FieldSelector: field("spec.nodeName!=node2")}, 240},
		"a name":               {client.ListOptions{FieldSelector: field("metadata.name=p007")}, 1},
		"a label and a field":  {client.ListOptions{LabelSelector: label("app in (web)"), FieldSelector: field("spec.nodeName=node0")}, 20},
		"what follows a token": {client.ListOptions{Continue: listing.ContinueAfter(last)}, 5},
	} {
		q, err := listing.Query(s, &test.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if found, _ := s.Select(q, nil); len(found) != test.want {
			t.Errorf("%s: %d objects, want %d", name, len(found), test.want)
		}
	}
	_, err := listing.Query(s, &client.ListOptions{FieldSelector: field("spec.other=x")})
	var unindexed *listing.UnindexedError
	if !errors.As(err, &unindexed) || unindexed.Field != "spec.other" {
		t.Errorf("a field without an index: %v", err)
	}
	if _, err := listing.Query(s, &client.ListOptions{Continue: "of the API server"}); err == nil || !strings.Contains(err.Error(), "not one of a cached list") {
		t.Errorf("a token of the API server: %v", err)
	}
}

func TestSetItemsFillsListsWithCopies(t *testing.T) {
	t.Parallel()
	found := []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	var list corev1.PodList
	if err := listing.SetItems(&list, found); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[0].Name != "a" || list.Items[1].Name != "b" {
		t.Errorf("items %v", list.Items)
	}
	list.Items[0].Labels["k"] = "changed"
	if found[0].GetLabels()["k"] != "v" {
		t.Error("an item shares memory with the object")
	}
}
