// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// defaultNode lets Pods have all there is, unless less is said, and keeps the one
// range of addresses of a node and the first of its list alike; the one decides.
func defaultNode(n *corev1.Node) {
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	s := &n.Spec
	switch {
	case len(s.PodCIDRs) == 0 && s.PodCIDR != "", len(s.PodCIDRs) > 0 && s.PodCIDR != "" && s.PodCIDR != s.PodCIDRs[0]:
		s.PodCIDRs = []string{s.PodCIDR}
	case len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	}
}

// prepareNode drops what kubelets once took their configuration from.
func prepareNode(_ context.Context, n, old *corev1.Node) {
	if old == nil || old.Spec.ConfigSource == nil { //nolint:staticcheck // it is what is dropped
		n.Spec.ConfigSource = nil //nolint:staticcheck // as above
	}
	if old == nil {
		n.Status.Config = nil
	}
}

func prepareNodeStatus(_ context.Context, n, old *corev1.Node) {
	if old.Status.Config == nil {
		n.Status.Config = nil
	}
}

func validateNode(n, old *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	metadata, spec, status := root.Child("metadata"), root.Child("spec"), root.Child("status")
	annotations := metadata.Child("annotations")
	checkAnnotations(&annotations, n.Annotations)
	checkTaints(&metadata, "taints", n.Spec.Taints) // so placed on the wire
	checkResources(&status, &n.Status)
	if swap := n.Status.NodeInfo.Swap; swap != nil && swap.Capacity != nil {
		at := metadata.Child("nodeSwapStatus") // as above
		at.Positive("capacity", *swap.Capacity)
	}
	checkFeatures(&status, n.Status.DeclaredFeatures)
	checkRanges(&spec, n.Spec.PodCIDRs)
	if old != nil {
		checkChange(&root, n, old)
	}
	return errs
}

func validateNodeStatus(n, old *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	checkChange(&root, n, old)
	return errs
}

// checkChange has the rules of updates, of the node and of its status. Some of
// those of creations are among them, and are then said twice.
func checkChange(root *valid.Field, n, old *corev1.Node) {
	metadata, spec, status := root.Child("metadata"), root.Child("spec"), root.Child("status")
	annotations := metadata.Child("annotations")
	checkAnnotations(&annotations, n.Annotations)
	checkResources(&status, &n.Status)
	checkFeatures(&status, n.Status.DeclaredFeatures)
	addresses, seen := status.Child("addresses"), sets.New[corev1.NodeAddress]()
	for i, a := range n.Status.Addresses {
		if at := addresses.Index(i); seen.Has(a) {
			at.Duplicate(valid.Self, valid.Untagged(a))
		}
		seen.Insert(a)
	}
	checkRangesChange(&spec, n.Spec.PodCIDRs, old.Spec.PodCIDRs)
	switch was := old.Spec.ProviderID; {
	case was == "" || was == n.Spec.ProviderID:
	case n.Spec.ProviderID == "":
		spec.Invalid("providerID", nil, "field cannot be cleared once set")
	default:
		spec.Invalid("providerID", nil, "field cannot be modified once set")
	}
	checkTaints(&metadata, "taints", n.Spec.Taints)
	if n.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		spec.Forbidden("externalID", "may not be updated")
	}
}

// checkRangesChange lets a node have its ranges of addresses once.
func checkRangesChange(f *valid.Field, now, before []string) {
	const once = `node updates may not change podCIDR except from "" to valid`
	if len(before) == 0 {
		return
	}
	if len(now) != len(before) {
		f.Forbidden("podCIDRs", once)
		return
	}
	for i := range now {
		if now[i] != before[i] {
			f.Forbidden("podCIDRs", once)
		}
	}
}

// checkRanges admits one range of addresses of each family.
func checkRanges(f *valid.Field, ranges []string) {
	list := f.Child("podCIDRs")
	for i, r := range ranges {
		at := list.Index(i)
		at.CIDR(valid.Self, r)
	}
	if len(ranges) < 2 {
		return
	}
	both, err := netutils.IsDualStackCIDRStrings(ranges)
	if err != nil {
		list.Add(field.InternalError(list.Path(), fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%w", err)))
	}
	if !both || len(ranges) > 2 {
		list.Invalid(valid.Self, ranges, "may specify no more than one CIDR for each IP family")
	}
}

func checkResources(f *valid.Field, s *corev1.NodeStatus) {
	check := func(name string, list corev1.ResourceList) {
		at := f.Child(name)
		for _, r := range slices.Sorted(maps.Keys(list)) {
			one := at.Child(string(r)) // not as the key of a map on the wire
			one.Quantity(valid.Self, string(r), list[r])
		}
	}
	check("capacity", s.Capacity)
	check("allocatable", s.Allocatable)
}

// checkTaints has the rules of what keeps Pods away.
func checkTaints(f *valid.Field, name string, taints []corev1.Taint) {
	list, seen := f.Child(name), sets.New[[2]string]()
	for i, t := range taints {
		at := list.Index(i)
		at.LabelKey("key", t.Key)
		if problems := validation.IsValidLabelValue(t.Value); len(problems) > 0 {
			at.Invalid("value", t.Value, strings.Join(problems, ";"))
		}
		if at.NonEmpty("effect", string(t.Effect)) {
			at.TaintEffect("effect", t.Effect)
		}
		key := [2]string{t.Key, string(t.Effect)}
		if seen.Has(key) {
			at.Duplicate(valid.Self, valid.Untagged(t))
			at.Last().Detail = "taints must be unique by key and effect pair"
		}
		seen.Insert(key)
	}
}

// featureName is the form of the name of what a node can do.
var featureName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*$`)
})

func checkFeatures(f *valid.Field, features []string) {
	list := f.Child("declaredFeatures")
	for i, name := range features {
		at := list.Index(i)
		switch {
		case len(name) > validation.DNS1123SubdomainMaxLength:
			at.Invalid(valid.Self, name, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", name, validation.DNS1123SubdomainMaxLength))
		case !featureName().MatchString(name):
			at.Invalid(valid.Self, name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments "+
				"separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name))
		}
		if i == 0 {
			continue
		}
		switch before := features[i-1]; {
		case name == before:
			at.Duplicate(valid.Self, name)
		case name < before:
			at.Invalid(valid.Self, name, "list must be sorted alphabetically")
		}
	}
}

// checkAnnotations has the rules of annotations that were fields to be.
func checkAnnotations(f *valid.Field, a map[string]string) {
	const taints = "scheduler.alpha.kubernetes.io/taints"
	if v := a[taints]; v != "" {
		var list []corev1.Taint
		if err := json.Unmarshal([]byte(v), &list); err != nil {
			f.Invalid(valid.Self, taints, err.Error())
		} else {
			checkTaints(f, taints, list)
		}
	}
	v := a[corev1.PreferAvoidPodsAnnotationKey]
	if v == "" {
		return
	}
	var avoid corev1.AvoidPods
	if err := json.Unmarshal([]byte(v), &avoid); err != nil {
		f.Invalid("AvoidPods", corev1.PreferAvoidPodsAnnotationKey, err.Error())
		return
	}
	list := f.Child(corev1.PreferAvoidPodsAnnotationKey)
	for i, p := range avoid.PreferAvoidPods {
		at := list.Index(i)
		signature := at.Child("PodSignature") // so spelled on the wire
		owner := signature.Child("PodController")
		switch c := p.PodSignature.PodController; {
		case c == nil:
			signature.Required(valid.Self, "")
		case c.Controller == nil || !*c.Controller:
			owner.Invalid("Controller", false, "must point to a controller")
		}
	}
}

func nodeWarnings(n, _ *corev1.Node) []string {
	var out []string
	if n.Spec.ConfigSource != nil { //nolint:staticcheck // it is what the warning is about
		out = append(out, "spec.configSource: the feature is removed")
	}
	if n.Spec.DoNotUseExternalID != "" {
		out = append(out, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, r := range n.Spec.PodCIDRs {
		out = append(out, validation.GetWarningsForCIDR(field.NewPath("spec", "podCIDRs").Index(i), r)...)
	}
	return out
}
