// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

func object(kind, name, owner, ready, message string) versions.Object {
	metadata := map[string]any{"uid": kind + name}
	if owner != "" {
		metadata["ownerReferences"] = []any{map[string]any{"uid": owner, "controller": true}}
	}
	content := map[string]any{"metadata": metadata}
	if ready != "" {
		content["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "R", "message": message}}}
	}
	return versions.Object{Object: trace.Object{Kind: kind, Namespace: "d", Name: name}, Content: content}
}

func TestTheDeepestThatBlocksComesFirst(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("no space on any node ", 100)
	all := []versions.Object{
		object("Town", "t", "", "False", "a shop is not ready"), object("Shop", "a", "Townt", "False", "wait"),
		object("Map", "sign", "Shopa", "", ""), object("Set", "good", "Shopa", "True", ""), object("Set", "zbad", "Shopa", "Unknown", ""),
		object("Pod", "p2", "Setzbad", "False", long), object("Pod", "p1", "Setgood", "True", ""), object("Pod", "other", "", "False", ""),
	}
	f := &chain.Facts{Records: records(trace.Record{ID: first, Controller: "pods", Object: all[5].Object, Outcome: trace.Failed, Error: "\x1bboom"})}
	tree := f.NewTree(all[1], all)
	want := `Pod d/p2 is not ready: R: ` + long + `
  last reconcile ` + first.String() + ` of pods: failed: \x1bboom

owned by Town d/t  Ready=False R
Shop d/a  Ready=False R
├─ Set d/zbad  Ready=Unknown R
│  └─ Pod d/p2  Ready=False R
├─ Map d/sign
└─ Set d/good  Ready=True R
   └─ Pod d/p1  Ready=True R
`
	if diff := cmp.Diff(want, tree.String()); diff != "" {
		t.Error(diff)
	}
	if wide := tree.Text(true); !strings.Contains(wide, "Pod d/p2  Ready=False R: no space on any node") || !strings.Contains(wide, "  last reconcile "+first.String()+" of pods: failed") {
		t.Error(wide)
	}
	if ready := f.NewTree(all[3], all); ready.Blocking != nil {
		t.Error(ready)
	}
	waits := object("Pod", "w", "", "False", "no node")
	condition := waits.Content["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	condition["type"] = "PodScheduled"
	if got := f.NewTree(waits, nil).Blocking; got == nil || got.Message != "no node" {
		t.Errorf("a Pod without a node: %+v", got)
	}
	condition["status"] = "True"
	if got := f.NewTree(waits, nil); got.Blocking != nil || got.Root.Type != "" {
		t.Errorf("a Pod with a node: %+v", got.Root)
	}
}

func TestTreesAreBounded(t *testing.T) {
	t.Parallel()
	all := []versions.Object{object("A", "a", "Bb", "", ""), object("B", "b", "Aa", "", "")} // each owns the other
	for i := range 5000 {
		all = append(all, object("Pod", fmt.Sprint(i), "Aa", "", ""))
	}
	f := &chain.Facts{Records: records()}
	tree := f.NewTree(all[0], all)
	if n := strings.Count(tree.String(), "\n"); n > 2100 || !strings.Contains(tree.String(), "not known: more than 2000 objects") {
		t.Errorf("%d lines", n)
	}
}

// TestTreesSayWhatNoConditionDoes: a StatefulSet has none, and that of a Pod names no reason of a
// container.
func TestTreesSayWhatNoConditionDoes(t *testing.T) {
	t.Parallel()
	set, pod := object("StatefulSet", "db", "", "", ""), object("Pod", "db-0", "StatefulSetdb", "False", "containers with unready status: [a]")
	set.Object.Group = "apps"
	set.Content["status"] = map[string]any{"readyReplicas": int64(0)}
	pod.Content["status"].(map[string]any)["containerStatuses"] = []any{map[string]any{
		"name": "a", "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}},
	}}
	f := &chain.Facts{Records: records()}
	const want = `Pod d/db-0 is not ready: CrashLoopBackOff; R: containers with unready status: [a]

StatefulSet d/db  0 of 1 ready
└─ Pod d/db-0  Ready=False R
`
	if diff := cmp.Diff(want, f.NewTree(set, []versions.Object{set, pod}).String()); diff != "" {
		t.Error(diff)
	}
}
