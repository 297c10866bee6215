// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validatePolicyStatus(p, _ *v1.ValidatingAdmissionPolicy) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("status")
	if t := p.Status.TypeChecking; t != nil {
		checking := f.Child("typeChecking")
		list := checking.Child("expressionWarnings")
		for i, w := range t.ExpressionWarnings {
			at := list.Index(i)
			at.NonEmpty("warning", w.Warning)
			if ref := strings.TrimSpace(w.FieldRef); at.NonEmpty("fieldRef", ref) {
				if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
					at.Invalid("fieldRef", ref, "invalid JSONPath: "+err.Error())
				}
			}
		}
	}
	f.Add(metavalidation.ValidateConditions(p.Status.Conditions, f.PathOf("conditions"))...)
	return errs
}
