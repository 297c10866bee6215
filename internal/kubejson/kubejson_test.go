// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubejson_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/internal/kubejson"
)

func TestUsualKindsAreReadInOnePass(t *testing.T) {
	t.Parallel()
	for _, obj := range []any{
		&corev1.Pod{}, &corev1.Service{}, &corev1.Node{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Event{}, &corev1.PersistentVolume{},
		&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ControllerRevision{},
		&batchv1.Job{}, &batchv1.CronJob{}, &networkingv1.Ingress{}, &rbacv1.ClusterRole{}, &storagev1.StorageClass{}, &autoscalingv2.HorizontalPodAutoscaler{},
		&metav1.PartialObjectMetadata{}, &metav1.Status{},
	} {
		if !kubejson.OnePass(reflect.TypeOf(obj)) {
			t.Errorf("%T is read twice", obj)
		}
	}
}

// Inner is embedded in the types below.
type Inner struct {
	A int `json:"a"`
}

// Whichever decoder is taken for a type, the result is that of the library.
func TestUnmarshalIsThatOfTheLibraryForUnusualTypes(t *testing.T) {
	t.Parallel()
	const document = `{"a":1,"A":2,"x":{"a":3,"b":[1,2.5,{"c":4}]},"n":9007199254740993,"s":"7","list":[1,2,3],"Inner":{"a":5}}`
	for _, build := range []func() any{
		func() any {
			return &struct {
				X any `json:"x"`
			}{}
		},
		func() any {
			return &struct {
				X map[string]any `json:"x"`
			}{}
		},
		func() any { return &struct{ A int }{} },
		func() any {
			return &struct {
				S int `json:"s,string"`
			}{}
		},
		func() any {
			return &struct {
				List [2]int `json:"list"`
			}{}
		},
		func() any {
			return &struct {
				X struct{ A int } `json:",inline"`
			}{}
		},
		func() any {
			return &struct {
				Inner `json:"x,inline"`
			}{}
		},
		func() any {
			return &struct {
				Inner `json:",inline"`
			}{}
		},
		func() any {
			return &struct {
				Inner `json:",string"` //nolint:staticcheck // a mistake that types have
			}{}
		},
		func() any { return &struct{ *Inner }{} },
		func() any {
			return &struct {
				N uintptr `json:"n"`
			}{}
		},
	} {
		got, want := build(), build()
		err, wantErr := kubejson.Unmarshal([]byte(document), got), kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), want)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%T: %v, want %v", got, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-library +ours)\n%s", got, diff)
		}
	}
}
