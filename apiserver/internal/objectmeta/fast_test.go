// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package objectmeta_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/internal/fastname"
)

// FuzzFastMetadata: metadata that validation rejects is never accepted, and common
// metadata is.
// usualMetadata has to be accepted in the place of itself, else nothing is shown.
const usualMetadata = `{"name":"x","namespace":"ns","uid":"u","resourceVersion":"1","generation":2}`

func FuzzFastMetadata(f *testing.F) {
	f.Add(`{"name":"web-1.example","namespace":"default","labels":{"app.kubernetes.io/name":"A_b.c","e":""},"annotations":{"x/Y":"any \n"},"generation":3,"resourceVersion":"7"}`, usualMetadata, true)
	f.Add(usualMetadata, usualMetadata, true)
	f.Add(`{"name":"x","labels":{"-a":"b"}}`, ``, false)
	f.Add(`{"name":"x","labels":{"a":"b-"},"annotations":{"a/b/c":""}}`, ``, false)
	f.Add(`{"name":"x-","namespace":"Ns","generation":-1}`, usualMetadata, true)
	f.Add(`{"name":"x..y"}`, ``, false)
	f.Add(`{"name":"x","namespace":"ns","uid":"u","resourceVersion":"1","generation":1}`, usualMetadata, true)
	f.Add(`{"name":"x","namespace":"ns","uid":"v","generation":3}`, usualMetadata, true)
	f.Add(`{"name":"x","ownerReferences":[{}],"finalizers":["a"]}`, ``, false)
	f.Add(`{"generateName":"web-","name":"web-x","namespace":"ns","uid":"u","resourceVersion":"1","generation":2,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"w","uid":"1","controller":true}]}`, usualMetadata, true)
	f.Add(`{"generateName":"Web","name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"w","uid":"1"}]}`, ``, false)
	f.Add(`{"name":"a/b","ownerReferences":[{"apiVersion":"a/b/c","kind":"K","name":"w","uid":"1"}]}`, ``, false)
	f.Fuzz(func(t *testing.T, text, before string, namespaced bool) {
		typedMetadata(t, text, before, namespaced)
		var metadata, old map[string]any
		if json.Unmarshal([]byte(text), &metadata) != nil || before != "" && json.Unmarshal([]byte(before), &old) != nil {
			return
		}
		for _, m := range []map[string]any{metadata, old} { // as the decoder of the server does
			if n, ok := m["generation"].(float64); ok {
				m["generation"] = int64(n)
			}
		}
		if !objectmeta.FastMetadata(metadata, old, namespaced, fastname.Subdomain) {
			if text == usualMetadata && before == text && namespaced {
				t.Errorf("does not accept %s", text)
			}
			return
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
		delete(metadata, "managedFields")
		errs := apivalidation.ValidateObjectMetaAccessor(obj, namespaced, apivalidation.NameIsDNSSubdomain, nil)
		if old != nil {
			errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(obj, &unstructured.Unstructured{Object: map[string]any{"metadata": old}}, nil)...)
		}
		if len(errs) > 0 {
			t.Errorf("accepts %s after %s: %v", text, before, errs)
		}
	})
}

// typedMetadata is the same check for Go types.
func typedMetadata(t *testing.T, text, before string, namespaced bool) {
	t.Helper()
	var obj, was metav1.ObjectMeta
	if json.Unmarshal([]byte(text), &obj) != nil || before != "" && json.Unmarshal([]byte(before), &was) != nil {
		return
	}
	obj.ManagedFields = nil
	var old metav1.Object
	if before != "" {
		old = &was
	}
	for _, rule := range []apivalidation.ValidateNameFunc{apivalidation.NameIsDNSSubdomain, func(name string, _ bool) []string { return content.IsPathSegmentName(name) }} {
		if !objectmeta.FastTypedMetadata(&obj, old, namespaced, func(name string) bool { return len(rule(name, false)) == 0 }) {
			if text == usualMetadata && before == text && namespaced {
				t.Errorf("does not accept %s", text)
			}
			continue
		}
		errs := apivalidation.ValidateObjectMetaAccessor(&obj, namespaced, rule, nil)
		if old != nil {
			errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(&obj, old, nil)...)
		}
		if len(errs) > 0 {
			t.Errorf("accepts %s after %s: %v", text, before, errs)
		}
	}
}
