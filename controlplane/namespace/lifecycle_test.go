// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

func TestLifecycleRefusesByTheStateOfTheNamespace(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	for name, ns := range map[string]corev1.Namespace{
		"alive":     {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
		"doomed":    {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
		"mentioned": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"phase": "Terminating"}}},
	} {
		steptest.Put(t, store, storage.Key{Bucket: Bucket, Name: name}, &ns)
	}
	configmaps, widgets := &resource.Resource{Names: resource.Names{Plural: "configmaps"}}, &resource.Resource{Names: resource.Names{Group: "example.com", Plural: "widgets"}}
	namespaces := &resource.Resource{Names: resource.Names{Plural: "namespaces"}}
	reviews := &resource.Resource{Names: resource.Names{Group: "authorization.k8s.io", Plural: "localsubjectaccessreviews"}}
	const immortal = ` is forbidden: this namespace may not be deleted`
	for _, test := range []struct {
		name            string
		of              *resource.Resource
		operation       resource.Operation
		namespace, what string
		want            string
	}{
		{"create in an active namespace", configmaps, resource.Create, "alive", "x", ""},
		{"create in a namespace that only mentions the phase", configmaps, resource.Create, "mentioned", "x", ""},
		{"create in a namespace that does not exist", configmaps, resource.Create, "none", "x", `namespaces "none" not found`},
		{"create in a terminating namespace", widgets, resource.Create, "doomed", "x",
			`widgets.example.com "x" is forbidden: unable to create new content in namespace doomed because it is being terminated`},
		{"update in a terminating namespace", configmaps, resource.Update, "doomed", "x", ""},
		{"delete in a terminating namespace", configmaps, resource.Delete, "doomed", "x", ""},
		{"connect in a terminating namespace", configmaps, resource.Connect, "doomed", "x", ""},
		{"create without a namespace", widgets, resource.Create, "", "x", ""},
		{"review of a terminating namespace", reviews, resource.Create, "doomed", "x", ""},
		{"review of a namespace that does not exist", reviews, resource.Create, "none", "x", ""},
		{"create a namespace", namespaces, resource.Create, "none", "none", ""},
		{"delete a namespace", namespaces, resource.Delete, "", "alive", ""},
		{"delete default", namespaces, resource.Delete, "", "default", `namespaces "default"` + immortal},
		{"delete kube-system", namespaces, resource.Delete, "", "kube-system", `namespaces "kube-system"` + immortal},
		{"delete kube-public", namespaces, resource.Delete, "", "kube-public", `namespaces "kube-public"` + immortal},
		{"delete kube-node-lease", namespaces, resource.Delete, "", "kube-node-lease", ""},
		{"update default", namespaces, resource.Update, "", "default", ""},
		{"delete another object named default", widgets, resource.Delete, "", "default", ""},
		{"no resource", nil, resource.Create, "none", "x", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			request := &resource.AdmissionRequest{
				Request:   &resource.Request{Resource: test.of, Namespace: test.namespace, Name: test.what},
				Operation: test.operation,
			}
			if test.operation != resource.Delete {
				request.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: test.what}}
			}
			admission := Plugin(component.Deps{Store: store}).Admission
			got := ""
			if err := admission.Admit(t.Context(), request); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("refused with %q, want %q", got, test.want)
			}
			if resource.Mutates(admission, request) {
				t.Error("it says that it changes the object")
			}
		})
	}
}

// TestLifecycleNamesTheCauseOfARefusal, by which clients know that it is no lack of a permission.
func TestLifecycleNamesTheCauseOfARefusal(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	steptest.Put(t, store, storage.Key{Bucket: Bucket, Name: "doomed"}, &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}})
	err := Lifecycle{Store: store}.Admit(t.Context(), &resource.AdmissionRequest{
		Request: &resource.Request{Resource: &resource.Resource{Names: resource.Names{Plural: "configmaps"}}, Namespace: "doomed"}, Operation: resource.Create,
	})
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Fatalf("%v has no cause NamespaceTerminating", err)
	}
	cause, _ := apierrors.StatusCause(err, corev1.NamespaceTerminatingCause)
	want := metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace doomed is being terminated", Field: "metadata.namespace"}
	if diff := cmp.Diff(want, cause); diff != "" {
		t.Errorf("cause (-want +got):\n%s", diff)
	}
}

func TestSystemComponentMakesTheNamespacesThatAreMissing(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	steptest.Put(t, store, storage.Key{Bucket: Bucket, Name: "default"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "kept"}})
	p := SystemComponent(component.Deps{Entropy: apiserver.SeededEntropy(1), Progress: component.Progress{Booted: func() error { return nil }}})
	boot := func() (made []string) {
		writes, requests, err := p.Boot(store.Latest(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		if err != nil || len(requests) > 0 {
			t.Fatalf("%d requests, %v", len(requests), err)
		}
		for _, w := range writes {
			made = append(made, w.Key.Name)
			if _, err := store.Commit(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		return made
	}
	expect(t, "made", []string{"kube-system", "kube-public", "kube-node-lease"}, boot())
	expect(t, "made again", nil, boot())
	ns := &corev1.Namespace{}
	if err := json.Unmarshal(store.Get(storage.Key{Bucket: Bucket, Name: "kube-public"}).Value, ns); err != nil {
		t.Fatal(err)
	}
	if ns.UID == "" || ns.UID == "kept" {
		t.Errorf("uid %q", ns.UID)
	}
	ns.UID, ns.ResourceVersion = "", ""
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	want := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-public", CreationTimestamp: at, Labels: map[string]string{"kubernetes.io/metadata.name": "kube-public"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kube-apiserver", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`),
			}},
		},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	if diff := cmp.Diff(want, ns); diff != "" {
		t.Errorf("the namespace (-want +got):\n%s", diff)
	}
}
