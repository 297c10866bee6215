// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/declared"
)

// recorded is an object as it was sent to kube-apiserver, and as it was
// stored and shown.
type recorded struct {
	Input   json.RawMessage `json:"input"`
	Output  map[string]any  `json:"output"`
	Columns []string        `json:"columns"`
	Cells   []any           `json:"cells"`
}

func find(t *testing.T, apiVersion, kind string) (*resource.Resource, *resource.Version) {
	t.Helper()
	for _, r := range core.Resources() {
		for i := range r.Versions {
			if r.GroupVersionKind(r.Versions[i].Name).GroupVersion().String() == apiVersion && r.Kind == kind {
				return r, &r.Versions[i]
			}
		}
	}
	return nil, nil
}

// TestResourcesPrepareCreationsAsKubeAPIServerDoes replays creations that were recorded from kube-apiserver:
// defaults, initial status, generation, field ownership and table cells.
func TestResourcesPrepareCreationsAsKubeAPIServerDoes(t *testing.T) {
	t.Parallel()
	for _, r := range readRecorded(t) {
		metadata := r.Output["metadata"].(map[string]any)
		name := r.Output["kind"].(string) + "/" + metadata["name"].(string)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, version := find(t, r.Output["apiVersion"].(string), r.Output["kind"].(string))
			if version == nil {
				t.Fatal("it is not served")
			}
			obj := version.New()
			if err := json.Unmarshal(r.Input, obj); err != nil {
				t.Fatal(err)
			}
			obj.SetUID(types.UID(metadata["uid"].(string)))
			ctx := context.Background()
			if _, err := version.Strategy.Default(obj); err != nil {
				t.Fatal(err)
			}
			owned, err := version.FieldManager.Update(t.Context(), version.New(), obj, "kubectl-create")
			if err != nil {
				t.Fatal(err)
			}
			obj = owned
			version.Strategy.Prepare(ctx, obj, nil)
			if s, ok := obj.(*corev1.Service); ok && s.Spec.ClusterIP != "" {
				s.Spec.ClusterIPs = []string{s.Spec.ClusterIP} // which the allocator does
			}
			if errs := version.Strategy.Validate(ctx, obj, nil); len(errs) > 0 {
				t.Errorf("validation: %v", errs)
			}
			got := encode(t, obj)
			normalise(got, metadata)
			want := encodeAny(t, r.Output).(map[string]any)
			forget(name, want, got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object (-kube-apiserver +ours):\n%s", diff)
			}
			compareTable(t, r, version, metadata)
		})
	}
}

// normalise drops what depends on the moment, and takes over what the server
// root sets.
func normalise(got, metadata map[string]any) {
	m := got["metadata"].(map[string]any)
	m["creationTimestamp"] = metadata["creationTimestamp"]
	entries, _ := m["managedFields"].([]any)
	for _, entry := range entries {
		delete(entry.(map[string]any), "time")
	}
	if status, ok := got["status"].(map[string]any); ok && status["lastPhaseTransitionTime"] != nil {
		status["lastPhaseTransitionTime"] = "2026-11-21T03:00:29Z"
	}
}

// forget removes from a recorded object what allocators and controllers of the
// control plane do, which this package has no part in.
func forget(name string, want, got map[string]any) {
	metadata := want["metadata"].(map[string]any)
	if metadata["managedFields"] == nil { // recorded without
		delete(got["metadata"].(map[string]any), "managedFields")
	}
	kind, _, _ := strings.Cut(name, "/")
	switch kind {
	case "Service":
		spec := want["spec"].(map[string]any)
		for _, key := range []string{"ipFamilies", "ipFamilyPolicy"} {
			delete(spec, key)
		}
		if spec["clusterIP"] != "None" {
			delete(spec, "clusterIP")
		}
		delete(spec, "clusterIPs")
		delete(got["spec"].(map[string]any), "clusterIPs")
		if ports, ok := spec["ports"].([]any); ok {
			for _, p := range ports {
				delete(p.(map[string]any), "nodePort")
			}
		}
	case "Pod": // admission
		spec := want["spec"].(map[string]any)
		for _, key := range []string{"priority", "preemptionPolicy", "tolerations"} {
			delete(spec, key)
		}
	case "PersistentVolume", "PersistentVolumeClaim":
		delete(metadata, "finalizers") // of the protection controllers
	case "Node":
		delete(want["spec"].(map[string]any), "taints") // of the taint controller
	}
}

func compareTable(t *testing.T, r recorded, version *resource.Version, metadata map[string]any) {
	if r.Cells == nil {
		return
	}
	var columns []string
	for _, c := range version.Printer.Columns() {
		name := c.Name
		if c.Type != "string" {
			name += ":" + c.Type
		}
		if c.Priority > 0 {
			name += "*"
		}
		columns = append(columns, name)
	}
	if diff := cmp.Diff(r.Columns, columns); diff != "" {
		t.Errorf("columns (-kube-apiserver +ours):\n%s", diff)
	}
	stored := version.New()
	raw, err := json.Marshal(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, stored); err != nil {
		t.Fatal(err)
	}
	var cells []any
	synctest.Test(t, func(t *testing.T) {
		created, _ := time.Parse(time.RFC3339, metadata["creationTimestamp"].(string))
		time.Sleep(time.Until(created.Add(27*time.Second + 500*time.Millisecond)))
		if cells, err = version.Printer.Cells(stored); err != nil {
			t.Fatal(err)
		}
	})
	if diff := cmp.Diff(stripAges(encodeAny(t, r.Cells)), stripAges(encodeAny(t, cells))); diff != "" {
		t.Errorf("cells (-kube-apiserver +ours):\n%s", diff)
	}
}

// stripAges replaces ages, which were recorded over some seconds.
func stripAges(v any) any {
	for i, cell := range v.([]any) {
		if s, ok := cell.(string); ok && len(s) <= 3 && strings.HasSuffix(s, "s") && strings.Trim(s, "0123456789s") == "" {
			v.([]any)[i] = "AGE"
		}
	}
	return v
}

func readRecorded(t *testing.T) []recorded {
	t.Helper()
	raw, err := os.ReadFile("testdata/created.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []recorded
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func encode(t *testing.T, obj resource.Object) map[string]any {
	t.Helper()
	return encodeAny(t, obj).(map[string]any)
}

func encodeAny(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDeclaredRulesAreKnown works out what Kubernetes declares of each type, which panics at a
// rule of another form than package declared has.
func TestDeclaredRulesAreKnown(t *testing.T) {
	t.Parallel()
	for _, r := range core.Resources() {
		for i := range r.Versions {
			func() {
				defer func() {
					if problem := recover(); problem != nil {
						t.Errorf("%s %s: %v", r.Versions[i].Name, r.Kind, problem)
					}
				}()
				declared.Of(reflect.TypeOf(r.Versions[i].New()).Elem())
			}()
		}
	}
}

// TestResourcesHaveTheNamesOfKubernetes compares names, scope and subresources with what
// kube-apiserver tells about itself.
func TestResourcesHaveTheNamesOfKubernetes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/discovery.json")
	if err != nil {
		t.Fatal(err)
	}
	var known []struct {
		Group, Version, Resource, Kind, Singular string
		Namespaced                               bool
		ShortNames, Categories                   []string
		Subresources                             map[string][]string
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		t.Fatal(err)
	}
	served := map[string]*resource.Resource{}
	for _, r := range core.Resources() {
		served[r.Group+"/"+r.Plural] = r
	}
	var missing []string
	for _, k := range known {
		r := served[k.Group+"/"+k.Resource]
		if r == nil {
			missing = append(missing, k.Group+"/"+k.Version+" "+k.Resource)
			continue
		}
		delete(served, k.Group+"/"+k.Resource)
		got := []any{r.Kind, r.Singular, r.Namespaced, r.ShortNames, r.Categories}
		want := []any{k.Kind, k.Singular, k.Namespaced, orNil(k.ShortNames), orNil(k.Categories)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-kube-apiserver +ours):\n%s", k.Resource, diff)
		}
		var ours []string
		for _, s := range r.Versions[0].Subresources {
			ours = append(ours, s.Name)
		}
		for _, s := range ours {
			if k.Subresources[s] == nil {
				t.Errorf("%s has no subresource %s", k.Resource, s)
			}
		}
		for _, s := range slices.Sorted(maps.Keys(k.Subresources)) {
			if !slices.Contains(ours, s) {
				missing = append(missing, k.Group+"/"+k.Version+" "+k.Resource+"/"+s)
			}
		}
	}
	for name := range served {
		t.Errorf("%s is not known to Kubernetes", name)
	}
	t.Logf("not served: %s", strings.Join(missing, ", "))
}

func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
