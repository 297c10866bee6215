// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Difference shows what a value has become, line by line, as Kubernetes does where a
// change is refused.
func Difference(before, now any) string { return diff.Diff(Untagged(before), Untagged(now)) }

// Untagged shows a value in an error as Kubernetes does where its rules work on
// types without JSON names: with the names of Go, and with all that is unset.
func Untagged(v any) json.Marshaler { return untagged{reflect.ValueOf(v)} }

type untagged struct{ v reflect.Value }

// MarshalJSON implements json.Marshaler.
func (u untagged) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := write(&b, u.v)
	return b.Bytes(), err
}

func write(b *bytes.Buffer, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return write(b, v.Elem())
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.Struct:
		switch value := v.Interface().(type) {
		case runtime.RawExtension:
			if len(value.Raw) > 0 && !json.Valid(value.Raw) { // of a client that sent protobuf
				return write(b, reflect.ValueOf(value.Raw))
			}
		case resource.Quantity, metav1.Time, metav1.MicroTime, metav1.Duration, intstr.IntOrString, metav1.LabelSelector, metav1.GroupResource, metav1.ObjectMeta:
		default:
			return writeStruct(b, v)
		}
	}
	raw, err := json.Marshal(v.Interface())
	b.Write(raw)
	return err
}

func writeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	err := writeFields(b, v)
	b.WriteByte('}')
	return err
}

// writeFields writes the members of a struct, and in place of structs that are
// embedded in it theirs.
func writeFields(b *bytes.Buffer, v reflect.Value) error {
	if metadata, ok := v.Interface().(metav1.ObjectMeta); ok { // which has names for JSON
		raw, err := json.Marshal(metadata)
		if len(raw) > len("{}") {
			comma(b)
			b.Write(raw[1 : len(raw)-1])
		}
		return err
	}
	for _, m := range membersOf(v) {
		if m.embedded {
			if err := writeFields(b, m.value); err != nil {
				return err
			}
			continue
		}
		comma(b)
		b.WriteString(`"` + m.name + `":`)
		if err := write(b, m.value); err != nil {
			return err
		}
	}
	return nil
}

// comma separates what comes from what is there.
func comma(b *bytes.Buffer) {
	if bytes.HasSuffix(b.Bytes(), []byte("{")) {
		return
	}
	b.WriteByte(',')
}
