// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validate(s service) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	checkName(&root, s)
	f, spec := root.Child("spec"), &s.Spec
	if spec.Group == "" && spec.Version != "v1" {
		f.Required("group", "only v1 may have an empty group and it better be legacy kube")
	}
	if spec.Group != "" {
		f.Subdomain("group", spec.Group)
	}
	f.Problems("version", spec.Version, validation.IsDNS1035Label(spec.Version))
	checkPriority(&f, "groupPriorityMinimum", spec.GroupPriorityMinimum, 20000)
	checkPriority(&f, "versionPriority", spec.VersionPriority, 1000)
	if spec.Service == nil {
		if n := len(spec.CABundle); n > 0 {
			f.Invalid("caBundle", fmt.Sprintf("%d bytes", n), "local APIServices may not have a caBundle")
		}
		if spec.InsecureSkipTLSVerify {
			f.Invalid("insecureSkipTLSVerify", true, "local APIServices may not have insecureSkipTLSVerify")
		}
		return errs
	}
	at := f.Child("service")
	at.NonEmpty("namespace", spec.Service.Namespace)
	at.NonEmpty("name", spec.Service.Name)
	port := kind.Value(spec.Service.Port)
	if problems := validation.IsValidPortNum(int(port)); len(problems) > 0 {
		at.Invalid("port", port, "port is not valid: "+strings.Join(problems, ", "))
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		f.Invalid("insecureSkipTLSVerify", true, "may not be true if caBundle is present")
	}
	return errs
}

// checkName checks that a service is named after what it is about.
func checkName(root *valid.Field, s service) {
	if s.Name == "" {
		return // which is said elsewhere
	}
	at := root.Child("metadata")
	if problems := content.IsPathSegmentName(s.Name); len(problems) > 0 {
		at.Problems("name", s.Name, problems)
	} else if name := s.Spec.Version + "." + s.Spec.Group; s.Name != name {
		at.Invalid("name", s.Name, fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", name))
	}
}

func checkPriority(f *valid.Field, name string, n int32, most int32) {
	if n <= 0 || n > most {
		f.Invalid(name, n, fmt.Sprintf("must be positive and less than %d", most))
	}
}

func validateStatus(s service) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	status := root.Child("status")
	list := status.Child("conditions")
	for i, c := range s.Status.Conditions {
		at := list.Index(i)
		valid.Supported(&at, "status", c.Status, v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown)
	}
	return errs
}
