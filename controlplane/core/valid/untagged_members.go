// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
)

// member is a part of a struct.
type member struct {
	name     string
	value    reflect.Value
	embedded bool
}

// membersOf lists the parts of a struct in the order in which Kubernetes has them in the
// types that its rules work on: the order of the API.
func membersOf(v reflect.Value) []member {
	var out []member
	order := orderOf(v.Interface())
	if order == "" {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			out = append(out, member{f.Name, v.Field(i), f.Anonymous && f.Type.Kind() == reflect.Struct})
		}
		return out
	}
	for name := range strings.FieldsSeq(order) {
		if name, left := strings.CutSuffix(name, "?"); left {
			out = append(out, member{name: name, value: reflect.Zero(reflect.TypeFor[[]byte]())})
			continue
		}
		name, plain := strings.CutSuffix(name, "!")
		value := v.FieldByName(name)
		if plain && value.IsNil() {
			value = reflect.Zero(value.Type().Elem())
		}
		out = append(out, member{name: name, value: value})
	}
	return out
}

// orderOf returns the parts of a struct that Kubernetes has partly as values where the API
// has pointers: those with an exclamation mark. What is unset is then zero. Those with a
// question mark are bytes that older versions of the API have. As kube-apiserver 1.37 shows
// them.
func orderOf(v any) string {
	switch v.(type) {
	case appsv1.RollingUpdateDeployment, appsv1.RollingUpdateDaemonSet:
		return "MaxUnavailable! MaxSurge!"
	case appsv1.RollingUpdateStatefulSetStrategy:
		return "Partition! MaxUnavailable"
	case certificatesv1.PodCertificateRequestSpec:
		return "SignerName PodName PodUID ServiceAccountName ServiceAccountUID NodeName NodeUID MaxExpirationSeconds " +
			"PKIXPublicKey? ProofOfPossession? StubPKCS10Request UnverifiedUserAnnotations"
	default:
		return ""
	}
}
