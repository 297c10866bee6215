// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status compares the statuses of objects in their JSON form, and carries
// a difference over to another version: conditions by their type, the rest as a
// merge patch.
package status

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/client"
)

// Of returns the status in its JSON form, and false for types without one.
func Of(obj client.Object) (map[string]any, bool, error) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		status, ok := u.UnstructuredContent()["status"].(map[string]any)
		if !ok {
			status = map[string]any{}
		}
		return status, true, nil
	}
	field := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !field.IsValid() {
		return nil, false, nil
	}
	data, err := json.Marshal(field.Interface())
	if err != nil {
		return nil, true, fmt.Errorf("encode status of %T: %w", obj, err)
	}
	status := map[string]any{}
	if string(data) != "null" {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &status)
	}
	if err != nil {
		err = fmt.Errorf("encode status of %T: %w", obj, err)
	}
	return status, true, err
}

// SetObservedGeneration sets status.observedGeneration where the type has it, or
// where an unstructured object already carries it.
func SetObservedGeneration(obj client.Object, generation int64) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		status, _ := u.UnstructuredContent()["status"].(map[string]any)
		if _, ok := status["observedGeneration"]; ok {
			status["observedGeneration"] = generation
		}
		return
	}
	status := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if status.Kind() != reflect.Struct {
		return
	}
	field, ok := fieldByJSONName(status, "observedGeneration")
	switch {
	case !ok:
	case field.Kind() == reflect.Int64:
		field.SetInt(generation)
	case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Int64:
		field.Set(reflect.ValueOf(&generation))
	}
}

// fieldByJSONName finds a field of a struct, or of one that is inlined in it.
func fieldByJSONName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && f.IsExported() {
			return v.Field(i), true
		}
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if field, ok := fieldByJSONName(v.Field(i), name); ok {
				return field, true
			}
		}
	}
	return reflect.Value{}, false
}
