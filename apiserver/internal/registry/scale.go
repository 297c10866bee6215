// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Scale returns the Scale of an object; with an error, as far as it could be read.
func Scale(scaler resource.Scaler, obj resource.Object) (*autoscalingv1.Scale, error) {
	spec, status, selector, err := scaler.Replicas(obj)
	scale := BareScale(obj)
	scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector = spec, status, selector
	return scale, err
}

// BareScale is a Scale with the metadata of its object and no replica counts.
func BareScale(obj resource.Object) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
	}
}
