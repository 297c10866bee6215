// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSetOwnerMakesOneControllingReference(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	owner := ownerWith(nil)
	mine := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1", Controller: &yes, BlockOwnerDeletion: &yes}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "2", Controller: &no}
	controlling := other
	controlling.Controller = &yes
	for name, tt := range map[string]struct {
		before, want []metav1.OwnerReference
		err          string
	}{
		"none":                      {nil, []metav1.OwnerReference{mine}, ""},
		"that of an owner beside":   {[]metav1.OwnerReference{other}, []metav1.OwnerReference{other, mine}, ""},
		"its own":                   {[]metav1.OwnerReference{mine}, []metav1.OwnerReference{mine}, ""},
		"its own, not controlling":  {[]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1"}}, []metav1.OwnerReference{mine}, ""},
		"that of a controlling one": {[]metav1.OwnerReference{controlling}, []metav1.OwnerReference{controlling}, "child is controlled by Secret other already"},
	} {
		child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: tt.before}}
		err := SetOwner(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"), child)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if diff := cmp.Diff(tt.want, child.OwnerReferences); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
