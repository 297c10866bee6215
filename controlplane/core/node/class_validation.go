// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateRuntimeClass(c, _ *nodev1.RuntimeClass) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	if o := c.Overhead; o != nil {
		at := f.Child("overhead")
		podspec.CheckOverhead(&at, o.PodFixed)
	}
	if s := c.Scheduling; s != nil {
		at := f.Child("scheduling")
		at.Labels("nodeSelector", s.NodeSelector)
		list := at.Child("tolerations")
		list.Tolerations(s.Tolerations)
		checkDistinct(&list, s.Tolerations)
	}
	return errs
}

// checkDistinct refuses tolerations that differ in nothing but their seconds.
func checkDistinct(f *valid.Field, tolerations []corev1.Toleration) {
	seen := sets.New[corev1.Toleration]()
	for i, t := range tolerations {
		key := t
		key.TolerationSeconds = nil
		if at := f.Index(i); seen.Has(key) {
			at.Duplicate(valid.Self, valid.Untagged(t))
		}
		seen.Insert(key)
	}
}

func runtimeClassWarnings(c, _ *nodev1.RuntimeClass) []string {
	if c.Scheduling == nil {
		return nil
	}
	var out []string
	for key := range c.Scheduling.NodeSelector {
		if text, old := valid.RenamedLabel(key); old {
			out = append(out, "scheduling.nodeSelector: "+text)
		}
	}
	slices.Sort(out)
	return out
}

// systemPriorities are the values of the priority classes that every cluster has.
func systemPriorities() map[string]int32 {
	return map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
}

func validatePriorityClass(c, old *schedulingv1.PriorityClass) field.ErrorList {
	const highest, prefix = 1_000_000_000, "system-"
	var errs field.ErrorList
	policy := field.NewPath("preemptionPolicy")
	if old != nil {
		if c.Value != old.Value {
			errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
		}
		f := valid.Root(&errs)
		f.Unchanged("preemptionPolicy", c.PreemptionPolicy, old.PreemptionPolicy)
		return errs
	}
	if strings.HasPrefix(c.Name, prefix) {
		value, known := systemPriorities()[c.Name]
		problem := ""
		switch {
		case !known:
			problem = c.Name + " is not a known system priority class"
		case c.Value != value:
			problem = fmt.Sprintf("value of %s PriorityClass must be %d", c.Name, value)
		case c.GlobalDefault:
			problem = "globalDefault of " + c.Name + " PriorityClass must be false"
		}
		if problem != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with '"+prefix+"' prefix are reserved for system use only. error: "+problem))
		}
	} else if c.Value > highest {
		errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %d", highest)))
	}
	switch kind.Value(c.PreemptionPolicy) {
	case corev1.PreemptLowerPriority, corev1.PreemptNever:
	case "":
		errs = append(errs, field.Required(policy, ""))
	default:
		errs = append(errs, field.NotSupported(policy, *c.PreemptionPolicy, []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}))
	}
	return errs
}
