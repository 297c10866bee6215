// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// SetOwner makes owner the controlling owner of child: deleted with it, and
// requested by its events. It refuses a child that another object controls.
func SetOwner(owner client.Object, gvk schema.GroupVersionKind, child client.Object) error {
	controls, blocks := true, true
	refs := child.GetOwnerReferences()
	for i := range refs {
		if refs[i].UID == owner.GetUID() {
			refs[i].Controller, refs[i].BlockOwnerDeletion = &controls, &blocks
			child.SetOwnerReferences(refs)
			return nil
		}
		if refs[i].Controller != nil && *refs[i].Controller {
			return fmt.Errorf("%s is controlled by %s %s already", child.GetName(), refs[i].Kind, refs[i].Name)
		}
	}
	child.SetOwnerReferences(append(refs, metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: &controls, BlockOwnerDeletion: &blocks,
	}))
	return nil
}
