// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// TestSchedulerAgreesWithKubeScheduler replays what oracle/cmd/schedule has recorded: which node
// each Pod of a scenario gets, or why none takes it.
func TestSchedulerAgreesWithKubeScheduler(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scheduling/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%d parts: %v", len(archive.Files), err)
			}
			c := newEmpty(t)
			var got []string
			reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(archive.Files[0].Data)))
			for {
				doc, err := reader.Read()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if line := c.play(doc); line != "" {
					got = append(got, line)
				}
			}
			want := strings.Split(strings.TrimSpace(string(archive.Files[1].Data)), "\n")
			equal(t, "what became of Pods", want, got)
		})
	}
}

// newEmpty returns a cluster without a node, moved by hand.
func newEmpty(t *testing.T) *cluster {
	t.Helper()
	return start(t, controlplane.Options{ManualControllers: true, Workloads: &workloads.Options{NoNode: true}})
}

// play creates an object, and returns what becomes of it if it is a Pod.
func (c *cluster) play(doc []byte) string {
	c.Helper()
	var kind metav1.TypeMeta
	if err := sigsyaml.Unmarshal(doc, &kind); err != nil {
		c.Fatal(err)
	}
	obj := map[string]object{
		"Node": &corev1.Node{}, "Pod": &corev1.Pod{}, "Namespace": &corev1.Namespace{}, "PriorityClass": &schedulingv1.PriorityClass{},
		"PersistentVolume": &corev1.PersistentVolume{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaim{},
	}[kind.Kind]
	if err := sigsyaml.UnmarshalStrict(doc, obj); err != nil {
		c.Fatal(err)
	}
	switch o := obj.(type) {
	case *corev1.Node:
		taints := o.Spec.Taints
		c.Create(o)
		c.taint(o.Name, taints...)
		return ""
	case *corev1.Pod:
		if o.Namespace == "" {
			o.Namespace = metav1.NamespaceDefault
		}
	case *corev1.PersistentVolumeClaim:
		o.Namespace = metav1.NamespaceDefault
	}
	c.Create(obj)
	c.settle()
	if kind.Kind != "Pod" {
		return ""
	}
	return obj.GetName() + ": " + c.fate(obj.GetNamespace(), obj.GetName())
}

// fate is the node of a Pod, or why it has none.
func (c *cluster) fate(namespace, name string) string {
	c.Helper()
	var p corev1.Pod
	if err := c.Client.Get(c.Context(), key(namespace, name), &p); err != nil {
		c.Fatal(err)
	}
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
