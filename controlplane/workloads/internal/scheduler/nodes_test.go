// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
)

func TestTaintIsTolerated(t *testing.T) {
	t.Parallel()
	taint := &corev1.Taint{Key: "a", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for text, want := range map[string]bool{
		"{key: a, value: v}": true, "{key: a, operator: Equal, value: v, effect: NoSchedule}": true, "{key: a, operator: Exists}": true, "{operator: Exists}": true,
		"{operator: Exists, effect: NoSchedule}": true, "{key: a}": false, "{key: a, value: w}": false, "{key: b, operator: Exists}": false,
		"{key: a, operator: Exists, effect: NoExecute}": false, "{value: v}": false, "{key: a, operator: Gt, value: v}": false,
	} {
		var toleration corev1.Toleration
		if err := yaml.UnmarshalStrict([]byte(text), &toleration); err != nil {
			t.Fatal(err)
		}
		other := corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}
		if got := scheduler.Tolerates([]corev1.Toleration{other, toleration}, taint); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestNodesAreSelected(t *testing.T) {
	t.Parallel()
	expressions := func(list string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + list + "]}}}"
	}
	for spec, want := range map[string]bool{
		"{}": true, "nodeSelector: {zone: a}": true, "nodeSelector: {zone: b}": false, "nodeSelector: {zone: a, disk: fast}": false,
		expressions("{matchExpressions: [{key: zone, operator: In, values: [b, a]}]}"):    true,
		expressions("{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}"):    false,
		expressions("{matchExpressions: [{key: disk, operator: NotIn, values: [fast]}]}"): true,
		expressions("{matchExpressions: [{key: zone, operator: Exists}]}"):                true,
		expressions("{matchExpressions: [{key: zone, operator: DoesNotExist}]}"):          false,
		expressions("{matchExpressions: [{key: size, operator: Gt, values: ['6']}]}"):     true,
		expressions("{matchExpressions: [{key: size, operator: Gt, values: ['7']}]}"):     false,
		expressions("{matchExpressions: [{key: size, operator: Lt, values: ['8']}]}"):     true,
		expressions("{matchExpressions: [{key: zone, operator: Odd, values: [a]}]}"):      false,
		expressions("{}"): false, // nothing may be an alternative
		expressions("{}, {matchExpressions: [{key: zone, operator: Exists}]}"):                                                                 true,
		expressions("{matchFields: [{key: metadata.name, operator: In, values: [node1]}]}"):                                                    true,
		expressions("{matchFields: [{key: metadata.name, operator: In, values: [node2]}]}"):                                                    false,
		expressions("{matchFields: [{key: metadata.name, operator: NotIn, values: [node1]}]}"):                                                 false,
		expressions("{matchExpressions: [{key: disk, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [node1]}]}"): false,
	} {
		var s corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		has := map[string]string{"zone": "a", "size": "7"}
		if got := scheduler.SelectNodes(&s).Matches("node1", has); got != want {
			t.Errorf("%s: %v", spec, got)
		}
		if s.Affinity != nil {
			volume := &corev1.VolumeNodeAffinity{Required: s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
			if got := scheduler.SelectNodesOfVolume(volume).Matches("node1", has); got != want {
				t.Errorf("as that of a volume, %s: %v", spec, got)
			}
		}
	}
	if !scheduler.SelectNodesOfVolume(nil).Matches("any", nil) {
		t.Error("a volume without affinity is not everywhere")
	}
}

// TestPlaceSaysWhyANodeIsRefused has one node, with a Pod that has the label app=web, the port 80
// of the host and keeps Pods with the label app=noisy away.
func TestPlaceSaysWhyANodeIsRefused(t *testing.T) {
	t.Parallel()
	const preempts, victims = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.", "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
	near := func(terms string) string {
		return "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + terms + "}]}}"
	}
	far := func(terms string) string {
		return strings.Replace(near(terms), "podAffinity", "podAntiAffinity", 1)
	}
	for what, tt := range map[string]struct {
		spec, label, reason, preemption string
		change                          func(*scheduler.Node, *scheduler.Pod)
	}{
		"it fits":                     {spec: "{}"},
		"unschedulable":               {spec: "{}", reason: "node(s) were unschedulable", preemption: preempts, change: func(n *scheduler.Node, _ *scheduler.Pod) { n.Unschedulable = true }},
		"tolerates that":              {spec: "tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]", change: func(n *scheduler.Node, _ *scheduler.Pod) { n.Unschedulable = true }},
		"too many Pods":               {spec: "{}", reason: "Too many pods", preemption: victims, change: func(n *scheduler.Node, _ *scheduler.Pod) { n.Pods = 1 }},
		"never preempts":              {spec: "preemptionPolicy: Never", reason: "Too many pods", preemption: "preemption: not eligible due to preemptionPolicy=Never.", change: func(n *scheduler.Node, _ *scheduler.Pod) { n.Pods = 1 }},
		"CPU that is taken":           {spec: "containers: [{name: c, resources: {requests: {cpu: 600m}}}]", reason: "Insufficient cpu", preemption: victims},
		"CPU that it lacks":           {spec: "containers: [{name: c, resources: {requests: {cpu: 2}}}]", reason: "Insufficient cpu", preemption: preempts},
		"a port":                      {spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 80}]}]", reason: "node(s) didn't have free ports for the requested pod ports", preemption: victims},
		"a port of another address":   {spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 81, hostIP: 127.0.0.2}]}]"},
		"a port of the same address":  {spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 81, hostIP: 127.0.0.1}]}]", reason: "node(s) didn't have free ports for the requested pod ports", preemption: victims},
		"a port of every address":     {spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 81, hostIP: 0.0.0.0}]}]", reason: "node(s) didn't have free ports for the requested pod ports", preemption: victims},
		"a port of another protocol":  {spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 80, protocol: UDP}]}]"},
		"a port of a sidecar":         {spec: "initContainers: [{name: i, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 80}]}]", reason: "node(s) didn't have free ports for the requested pod ports", preemption: victims},
		"a port of an init container": {spec: "initContainers: [{name: i, ports: [{containerPort: 1, hostPort: 80}]}]"},
		"another node":                {spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node2]}]}]}}}", reason: "node(s) didn't satisfy plugin(s) [NodeAffinity]", preemption: preempts},
		"a volume in use":             {spec: "{}", reason: "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod", preemption: victims, change: func(_ *scheduler.Node, p *scheduler.Pod) { p.Volumes.InUse = true }},
		"refused":                     {spec: "{}", reason: "because", preemption: preempts, change: func(_ *scheduler.Node, p *scheduler.Pod) { p.Refused = "because" }},
		"near Pods":                   {spec: near("topologyKey: zone, labelSelector: {matchLabels: {app: web}}")},
		"near others":                 {spec: near("topologyKey: zone, labelSelector: {matchLabels: {app: db}}"), reason: "node(s) didn't match pod affinity rules", preemption: preempts},
		"the first of them":           {spec: near("topologyKey: zone, labelSelector: {matchLabels: {app: db}}"), label: "db"},
		"near without label":          {spec: near("topologyKey: rack, labelSelector: {matchLabels: {app: web}}"), reason: "node(s) didn't match pod affinity rules", preemption: preempts},
		"near in another namespace":   {spec: near("topologyKey: zone, namespaces: [other], labelSelector: {matchLabels: {app: web}}"), reason: "node(s) didn't match pod affinity rules", preemption: preempts},
		"near in every namespace":     {spec: near("topologyKey: zone, namespaceSelector: {}, labelSelector: {matchLabels: {app: web}}")},
		"far from Pods":               {spec: far("topologyKey: zone, labelSelector: {matchLabels: {app: web}}"), reason: "node(s) didn't match pod anti-affinity rules", preemption: victims},
		"far without label":           {spec: far("topologyKey: rack, labelSelector: {matchLabels: {app: web}}")},
		"kept away":                   {spec: "{}", label: "noisy", reason: "node(s) didn't satisfy existing pods anti-affinity rules", preemption: victims},
		"spread without label":        {spec: "topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]", reason: "node(s) didn't match pod topology spread constraints (missing required label)", preemption: preempts},
		"spread that is preferred":    {spec: "topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			node := &scheduler.Node{Name: "node1", Labels: map[string]string{"zone": "a"}, Allocatable: scheduler.Resources{corev1.ResourceCPU: 1000}, Pods: 10}
			w := &world{nodes: []*scheduler.Node{node}, pods: []scheduler.Bound{{
				Namespace: "default", Labels: map[string]string{"app": "web"}, Node: "node1",
				Demand: demand(t, "containers: [{name: c, resources: {requests: {cpu: 500m}}, ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 81, hostIP: 127.0.0.1}]}]\n"+
					far("topologyKey: zone, labelSelector: {matchLabels: {app: noisy}}")),
			}}}
			p := &scheduler.Pod{Namespace: "default", Labels: map[string]string{"app": tt.label}, Demand: demand(t, tt.spec)}
			if tt.change != nil {
				tt.change(node, p)
			}
			name, failure := scheduler.Place(w, p)
			wantNode, want := "node1", ""
			if tt.reason != "" {
				wantNode, want = "", "0/1 nodes are available: 1 "+tt.reason+". no new claims to deallocate, "+tt.preemption
			}
			if name != wantNode || failure != want {
				t.Errorf("node %q, %q\nwant %q, %q", name, failure, wantNode, want)
			}
		})
	}
}
