// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package revisioned_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/revisioned"
)

// member is a stored Pod of a DaemonSet or StatefulSet.
type member struct {
	name, node, phase string
	old, ready, going bool
}

// put stores it with the revision label now, or before if it is old.
func (m *member) put(t *testing.T, w *clustertest.World, kind, owner, now, before string) {
	t.Helper()
	revision, deletion, status := now, "", "False"
	if m.old {
		revision = before
	}
	if m.going {
		deletion = "deletionTimestamp: '2026-01-01T00:00:00Z', "
	}
	if m.ready {
		status = "True"
	}
	phase := m.phase
	if phase == "" {
		phase = "Running"
	}
	w.Put(t, cluster.Pods, m.name, fmt.Sprintf("metadata: {%slabels: {a: b, controller-revision-hash: %s}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: %s, controller: true}]}\n"+
		"spec: {nodeName: '%s'}\nstatus: {phase: %s, conditions: [{type: Ready, status: '%s'}]}", deletion, revision, kind, owner, owner, m.node, phase, status))
}

// changes shows the Pods that requests create and delete.
func changes(t *testing.T, requests []step.Request) string {
	t.Helper()
	var out []string
	for _, r := range requests {
		if name, ok := strings.CutPrefix(r.Path, "/api/v1/namespaces/default/pods/"); ok && r.Method == "DELETE" {
			out = append(out, "-"+name)
		}
	}
	for _, p := range pods(t, requests) {
		name := p.Name
		if a := p.Spec.Affinity; name == "" && a != nil {
			name = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		}
		out = append(out, "+"+name)
	}
	return strings.Join(out, " ")
}

func TestDaemonSetReplacesItsPods(t *testing.T) {
	t.Parallel()
	const one, surge, manual = "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}", "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}", "{type: OnDelete}"
	for name, c := range map[string]struct {
		strategy string
		pods     []member
		want     string
		status   string // desired, current, ready, available, updated, misscheduled
	}{
		"all are of the newest template":   {one, []member{{name: "a", node: "n1", ready: true}, {name: "b", node: "n2", ready: true}}, "", "2 2 2 2 2 0"},
		"one after the other":              {one, []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n2", old: true, ready: true}}, "-a", "2 2 2 2 0 0"},
		"all of them at once":              {"{type: RollingUpdate, rollingUpdate: {maxUnavailable: 100%}}", []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n2", old: true, ready: true}}, "-a -b", "2 2 2 2 0 0"},
		"a Pod that is not ready at once":  {one, []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n2", old: true}}, "-b", "2 2 1 1 0 0"},
		"waits for a new Pod":              {one, []member{{name: "a", node: "n1"}, {name: "b", node: "n2", old: true, ready: true}}, "", "2 2 1 1 1 0"},
		"waits for a Pod that terminates":  {one, []member{{name: "a", node: "n1", old: true, going: true}, {name: "b", node: "n2", old: true, ready: true}}, "", "2 2 1 1 0 0"},
		"none by hand":                     {manual, []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n2", old: true, ready: true}}, "", "2 2 2 2 0 0"},
		"the surplus of a node":            {manual, []member{{name: "a", node: "n1", ready: true}, {name: "b", node: "n1", ready: true}, {name: "c", node: "n2", ready: true}}, "-b", "2 2 2 2 2 0"},
		"a Pod that failed":                {manual, []member{{name: "a", node: "n1", phase: "Failed"}, {name: "b", node: "n2", ready: true}}, "-a", "2 2 1 1 2 0"},
		"a Pod that succeeded":             {manual, []member{{name: "a", node: "n1", phase: "Succeeded"}, {name: "b", node: "n2", ready: true}}, "-a", "2 2 1 1 2 0"},
		"a Pod of a node that is gone":     {manual, []member{{name: "a", node: "n1", ready: true}, {name: "b", node: "n2", ready: true}, {name: "c", node: "n3", ready: true}}, "", "2 2 2 2 2 0"},
		"a Pod where none should be":       {manual, []member{{name: "a", node: "n1", ready: true}, {name: "b", node: "n2", ready: true}, {name: "c", node: "tainted", ready: true}}, "", "2 2 2 2 2 1"},
		"surge: a new one beside the old":  {surge, []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n2", old: true, ready: true}}, "+n1", "2 2 2 2 0 0"},
		"surge: waits for the new one":     {surge, []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n1"}, {name: "c", node: "n2", old: true, ready: true}}, "", "2 2 2 2 0 0"},
		"surge: the old one goes":          {surge, []member{{name: "a", node: "n1", old: true, ready: true}, {name: "b", node: "n1", ready: true}, {name: "c", node: "n2", old: true, ready: true}}, "-a", "2 2 2 2 0 0"},
		"surge: the old one is not ready":  {surge, []member{{name: "a", node: "n1", old: true}, {name: "b", node: "n1"}, {name: "c", node: "n2", ready: true}}, "-a", "2 2 1 1 1 0"},
		"surge: two new ones":              {surge, []member{{name: "a", node: "n1", ready: true}, {name: "b", node: "n1", ready: true}, {name: "c", node: "n2", ready: true}}, "-b", "2 2 2 2 2 0"},
		"surge: none is left that runs":    {surge, []member{{name: "a", node: "n1", ready: true, going: true}, {name: "b", node: "n2", ready: true}}, "+n1", "2 2 2 2 2 0"},
		"surge: misplaced ones come last":  {surge, []member{{name: "a", node: "n1", ready: true}, {name: "b", node: "n2", ready: true}, {name: "c", node: "tainted", old: true, ready: true}}, "-c", "2 2 2 2 2 1"},
		"surge: unready ones at once":      {surge, []member{{name: "a", node: "n1", old: true}, {name: "b", node: "n2", old: true}}, "+n1 +n2", "2 2 0 0 0 0"},
		"a missing Pod before any rolling": {one, []member{{name: "a", node: "n1", old: true, ready: true}}, "+n2", "2 1 1 1 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New()
			w.Put(t, cluster.Nodes, "n1", "{}")
			w.Put(t, cluster.Nodes, "n2", "{}")
			w.Put(t, cluster.Nodes, "tainted", "spec: {taints: [{key: a, effect: NoSchedule}]}")
			key := w.Put(t, cluster.DaemonSets, "agent", "spec: {updateStrategy: "+c.strategy+", "+template+"}")
			look := func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { revisioned.DaemonSet(turn, key) }) }
			now := strings.TrimPrefix(revision(t, w, look), "agent-")
			for i := range c.pods {
				c.pods[i].put(t, w, "DaemonSet", "agent", now, "before")
			}
			requests := look()
			if got := changes(t, requests); got != c.want {
				t.Errorf("the changes are %q, want %q", got, c.want)
			}
			last := requests[len(requests)-1]
			if last.Path != "/apis/apps/v1/namespaces/default/daemonsets/agent/status" {
				t.Fatalf("requests:\n%s", clustertest.Lines(requests))
			}
			s := clustertest.Body[appsv1.DaemonSet](t, last).Status
			got := fmt.Sprint(s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled, s.NumberMisscheduled)
			if got != c.status || s.NumberUnavailable != s.DesiredNumberScheduled-s.NumberAvailable {
				t.Errorf("the status is %s with %d unavailable, want %s", got, s.NumberUnavailable, c.status)
			}
		})
	}
}
