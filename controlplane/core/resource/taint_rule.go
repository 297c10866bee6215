// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// taintRule taints the devices that it selects (KEP-5055).
type taintRule = *resourcev1.DeviceTaintRule

func taintRules() *resource.Resource {
	return kind.Definition[resourcev1.DeviceTaintRule, taintRule]{
		Group: resourcev1.GroupName, Version: "v1", Plural: "devicetaintrules", Cluster: true, Generations: true, Status: true,
		Metadata: kind.Metadata{KeepMetadataInStatus: true},
		Defaults: func(r taintRule) { kind.Fill(&r.Spec.Taint.TimeAdded, thisSecond()) },
		Prepare:  prepareTaintRule,
		Validate: validateTaintRule, ValidateStatus: validateTaintRuleStatus,
		Columns: kind.Columns("Name", "Key", "Value", "Effect", "TimeAdded", "Age"),
		Row: func(r taintRule) []any {
			t := &r.Spec.Taint
			return []any{r.Name, t.Key, t.Value, string(t.Effect), table.Age(*t.TimeAdded), kind.Age(r)}
		},
	}.Resource()
}

// thisSecond is now, as far as objects keep it.
func thisSecond() metav1.Time { return metav1.Time{Time: time.Now().Truncate(time.Second)} }

// prepareTaintRule has the time begin again when the effect changes: tolerations count from it.
func prepareTaintRule(_ context.Context, r, old taintRule) {
	if old == nil {
		return
	}
	now, before := &r.Spec.Taint, &old.Spec.Taint
	if now.Effect != before.Effect && now.TimeAdded.Equal(before.TimeAdded) {
		at := thisSecond()
		now.TimeAdded = &at
	}
}

func validateTaintRule(r, _ taintRule) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	spec := root.Child("spec")
	if s := r.Spec.DeviceSelector; s != nil {
		f := spec.Child("deviceSelector")
		if s.Driver != nil {
			checkDriver(&f, "driver", *s.Driver)
		}
		if s.Pool != nil {
			checkPoolName(&f, "pool", *s.Pool)
		}
		if s.Device != nil {
			f.DNSLabel("device", *s.Device)
		}
	}
	f := spec.Child("taint")
	checkTaint(&f, &r.Spec.Taint)
	return errs
}

func validateTaintRuleStatus(r, _ taintRule) field.ErrorList {
	const name, most = "conditions", resourcev1.DeviceTaintRuleStatusMaxConditions
	var errs field.ErrorList
	root := valid.Root(&errs)
	f, conditions := root.Child("status"), r.Status.Conditions
	f.Add(metavalidation.ValidateConditions(conditions, f.PathOf(name))...)
	if len(conditions) > most {
		f.TooMany(name, len(conditions), most)
	}
	return errs
}
