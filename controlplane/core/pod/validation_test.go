// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

func plainPod() *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
	}}}}
	p.Name = "p"
	defaultPod(p)
	return p
}

// TestValidationOfValidPodsFormatsNoPaths: places in an object are written out for errors alone.
func TestValidationOfValidPodsFormatsNoPaths(t *testing.T) { // it counts allocations
	p := plainPod()
	if errs := validatePod(p, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	const most = 32 // sets of names and the like; with paths it would be over 60
	if n := testing.AllocsPerRun(100, func() { validatePod(p, nil) }); n > most {
		t.Errorf("%v allocations, want at most %d", n, most)
	}
}

func TestFieldPathsAreWrittenAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	var errs field.ErrorList
	root := valid.Root(&errs)
	spec := root.Child("spec")
	list := spec.Child("containers")
	at := list.Index(2)
	limits := at.Child("limits")
	cpu := limits.Key("cpu")
	root.Required("kind", "")
	at.Required("name", "")
	cpu.Required(valid.Self, "")
	for i, want := range []string{"kind", "spec.containers[2].name", "spec.containers[2].limits[cpu]"} {
		if errs[i].Field != want {
			t.Errorf("%s, want %s", errs[i].Field, want)
		}
	}
}
