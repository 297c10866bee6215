// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gotypes

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestDefinitionsOfTheAppsGroup compares with the definitions of kube-apiserver
// for apps/v1, in testdata without descriptions and unions, which are not generated.
func TestDefinitionsOfTheAppsGroup(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/apps-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for name, s := range Definitions(Kubernetes(), reflect.TypeFor[appsv1.DeploymentList](), reflect.TypeFor[appsv1.DaemonSetList](),
		reflect.TypeFor[*appsv1.StatefulSetList](), reflect.TypeFor[appsv1.ReplicaSetList](), reflect.TypeFor[appsv1.ControllerRevisionList]()) {
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var decoded any
		if err := json.Unmarshal(encoded, &decoded); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, ".api.") {
			got[name] = withoutDescriptions(decoded)
		}
	}
	delete(want, "io.k8s.api.autoscaling.v1.Scale")
	delete(want, "io.k8s.api.autoscaling.v1.ScaleSpec")
	delete(want, "io.k8s.api.autoscaling.v1.ScaleStatus")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-server +ours):\n%s", diff)
	}
}

func withoutDescriptions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for k := range v {
			v[k] = withoutDescriptions(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutDescriptions(v[i])
		}
	}
	return v
}

type Custom struct {
	Name    string            `json:"name"`
	Next    *Custom           `json:"next,omitempty"`
	Numbers map[string][]int  `json:"numbers,omitempty"`
	Any     any               `json:"any,omitempty"`
	Hidden  string            `json:"-"`
	Bytes   []byte            `json:"bytes,omitempty"`
	Pods    []corev1.PodPhase `json:"phases"`
}

func (Custom) SwaggerDoc() map[string]string {
	return map[string]string{"": "A thing.", "name": "Its name."}
}

func TestTypesOfOtherPackages(t *testing.T) {
	t.Parallel()
	const name = "com.github.steer-dev.steer.apiserver.openapi.gotypes.Custom"
	markers := ParseMarkers("package\tgithub.com/steer-dev/steer/apiserver/openapi/gotypes\nCustom.phases\tlistType=set\toptional\n")
	got, err := json.Marshal(Definitions(markers, reflect.TypeFor[Custom]()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"` + name + `":{"description":"A thing.","type":"object","required":["name"],"properties":{` +
		`"any":{"type":"object"},"bytes":{"type":"string","format":"byte"},` +
		`"name":{"description":"Its name.","type":"string","default":""},` +
		`"next":{"allOf":[{"$ref":"#/components/schemas/` + name + `"}]},` +
		`"numbers":{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer","format":"int32"}}},` +
		`"phases":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}

func BenchmarkDefinitionsOfPod(b *testing.B) {
	markers := Kubernetes()
	b.ReportAllocs()
	for b.Loop() {
		Definitions(markers, reflect.TypeFor[corev1.Pod]())
	}
}
