// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// FuzzFastTags holds that the tag of what is taken for a reference is the one that the
// form of references finds.
func FuzzFastTags(f *testing.F) {
	for _, seed := range []string{
		"", "a", "a:latest", "a:", ":a", "registry.example.com/team/app:1.2.3", "registry:5000/app", "registry:5000/app:v1", "a/b/c", "a//b", "/a", "a/", "a..b", "a--b", "a__b", "-a", "a-",
		"A/b", "a/B", "a:-b", "a:b/c", "a@sha256:" + strings.Repeat("0", 64), "a:b@sha256:" + strings.Repeat("0", 64), "a\x10", "a:\x10", "a.", "é", "a:é",
		strings.Repeat("a", 255), strings.Repeat("a", 256), "a:" + strings.Repeat("b", 128), "a:" + strings.Repeat("b", 129),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, image string) {
		tag, plain := fastTag(image)
		if !plain {
			return
		}
		if parts := imageName().FindStringSubmatch(image); parts == nil || parts[1] != tag || parts[2] != "" || len(image) > 255 {
			t.Errorf("%q is taken for a reference with the tag %q: %q", image, tag, parts)
		}
	})
}

// TestFastTagAcceptsUsualImages holds that the fast path is taken.
func TestFastTagAcceptsUsualImages(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{"nginx": "", "nginx:latest": "latest", "registry.example.com/team/my-app:1.2.3": "1.2.3"} {
		if tag, plain := fastTag(image); !plain || tag != want {
			t.Errorf("the tag of %s is %q, %v", image, tag, plain)
		}
	}
}

// TestFastVariablesAreValid holds that there is nothing wrong with what is taken for right.
func TestFastVariablesAreValid(t *testing.T) {
	t.Parallel()
	names := []string{"", "A", "a.b-c", "A=B", "A B", "é", "A\x10"}
	refs := []string{"", "app", "App", "app.example.com", "a_b", "-", "..", "../a"}
	plain := 0
	for _, name := range names {
		for _, ref := range refs {
			for _, key := range refs {
				for kinds := range 16 {
					e := corev1.EnvVar{Name: name}
					if kinds&1 != 0 {
						e.ValueFrom = &corev1.EnvVarSource{}
					}
					if kinds&3 == 3 {
						e.ValueFrom.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ref}, Key: key}
					}
					if kinds&5 == 5 {
						e.ValueFrom.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ref}, Key: key}
					}
					if kinds&8 != 0 {
						e.Value = "v"
					}
					if !fastEnv(&e) {
						continue
					}
					plain++
					var errs field.ErrorList
					at := valid.Root(&errs)
					if at.Problems("name", e.Name, validation.IsRelaxedEnvVarName(e.Name)); e.ValueFrom != nil {
						checkEnvSource(&at, &e)
					}
					if len(errs) > 0 {
						t.Errorf("%+v is taken for right: %v", e, errs)
					}
				}
			}
		}
	}
	if plain < 100 {
		t.Errorf("%d were taken for right", plain)
	}
}

// TestFastAmountsAreValid holds that there is nothing wrong with what is taken for right.
func TestFastAmountsAreValid(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	names := []corev1.ResourceName{"cpu", "memory", "cpu", "memory", "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/device", "storage"}
	amounts := []string{"0", "1", "100m", "0.0001", "1Gi", "-1", "512Mi", "1e3"}
	list := func() corev1.ResourceList {
		out := corev1.ResourceList{}
		for range random.IntN(3) {
			out[names[random.IntN(len(names))]] = resource.MustParse(amounts[random.IntN(len(amounts))])
		}
		return out
	}
	plain, wrong := 0, 0
	for range 5000 {
		r := &corev1.ResourceRequirements{Limits: list(), Requests: list()}
		for _, rule := range []resourceRule{CheckContainerResource, podResource} {
			var errs field.ErrorList
			root := valid.Root(&errs)
			checkAmounts(&root, r, rule)
			if fastAmounts(r) {
				if plain++; len(errs) > 0 {
					t.Fatalf("%v is taken for right: %v", r, errs)
				}
			} else if len(errs) > 0 {
				wrong++
			}
		}
	}
	if plain < 1000 || wrong < 1000 {
		t.Errorf("%d were taken for right, %d are wrong", plain, wrong)
	}
}
