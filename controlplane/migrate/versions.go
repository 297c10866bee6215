// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition returns a CustomResourceDefinition in v1. kube-apiserver stores them as JSON of
// v1beta1.
func definition(value []byte) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(value, &meta); err != nil {
		return nil, fmt.Errorf("the JSON is damaged: %w", err)
	}
	if meta.APIVersion != v1beta1.SchemeGroupVersion.String() {
		return value, nil
	}
	var old v1beta1.CustomResourceDefinition
	if err := json.Unmarshal(value, &old); err != nil {
		return nil, fmt.Errorf("the JSON is damaged: %w", err)
	}
	v1beta1.SetDefaults_CustomResourceDefinition(&old)
	v1beta1.SetDefaults_CustomResourceDefinitionSpec(&old.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := v1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&old, &internal, nil); err != nil {
		return nil, err
	}
	var out v1.CustomResourceDefinition
	if err := v1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(&internal, &out, nil); err != nil {
		return nil, err
	}
	out.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return json.Marshal(&out)
}

// sameFields returns v1 of a kind for a beta version that has the same fields under the
// same names and numbers: kube-apiserver stores a kind in its beta version for some releases
// after v1 was added.
func sameFields(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	for _, beta := range betas() {
		if gvk == beta {
			gvk.Version = "v1"
		}
	}
	return gvk
}

// betas are the versions with the fields of v1.
func betas() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "MutatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "MutatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "ValidatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: "networking.k8s.io", Version: "v1beta1", Kind: "IPAddress"},
		{Group: "networking.k8s.io", Version: "v1beta1", Kind: "ServiceCIDR"},
		{Group: "resource.k8s.io", Version: "v1beta2", Kind: "DeviceClass"},
		{Group: "resource.k8s.io", Version: "v1beta2", Kind: "ResourceClaim"},
		{Group: "resource.k8s.io", Version: "v1beta2", Kind: "ResourceClaimTemplate"},
		{Group: "resource.k8s.io", Version: "v1beta2", Kind: "ResourceSlice"},
		{Group: "storage.k8s.io", Version: "v1beta1", Kind: "VolumeAttributesClass"},
		{Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: "StorageVersionMigration"},
	}
}
