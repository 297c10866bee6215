// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// request is a CertificateSigningRequest.
type request = *certificatesv1.CertificateSigningRequest

// Names in the API.
const (
	plural = "certificatesigningrequests"
	bucket = certificatesv1.GroupName + "/" + plural
)

// Resources returns the kinds of this package; planes share the values.
func Resources() []*resource.Resource {
	return []*resource.Resource{signingRequests(), trustBundles(), podRequests()}
}

// Component returns the kinds as a part of a control plane.
func Component(d component.Deps) component.Component {
	return component.Component{
		Name: "certificates", Resources: Resources(),
		Extend: []component.Extension{{
			Resource: podPlural + "." + certificatesv1.GroupName,
			Status:   func(s resource.Strategy) resource.Strategy { return signed{s, permission{d.Authorizer}} },
		}},
	}
}

var signingRequests = sync.OnceValue(func() *resource.Resource {
	k := kind.Definition[certificatesv1.CertificateSigningRequest, request]{
		Group: certificatesv1.GroupName, Version: "v1", Plural: plural, Short: []string{"csr"}, Cluster: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true, RepeatStatusCreationErrors: true},
		NameRule: func(string, bool) []string { return nil },
		Status:   true, Unowned: []string{"spec"}, Unconditional: true,
		Prepare:  prepare,
		Validate: func(obj, _ request) field.ErrorList { return validate(obj) },
		Columns:  columns(),
		Row:      row,
		Selectable: []kind.Selectable[request]{
			kind.Leaf("spec.signerName", func(r request) string { return r.Spec.SignerName }),
		},
	}
	r := k.Resource()
	v := &r.Versions[0]
	v.Subresources[0].Strategy = statusRules{}
	v.Subresources = append(v.Subresources, resource.Subresource{
		Name: "approval", Strategy: approvalRules{}, FieldManager: k.FieldManager("approval"),
	})
	return r
})

// prepare records the user who creates the request. The spec is immutable afterwards.
func prepare(ctx context.Context, obj, old request) {
	if old != nil {
		obj.Spec = old.Spec
		return
	}
	spec := &obj.Spec
	spec.Username, spec.UID, spec.Groups, spec.Extra = "", "", nil, nil
	r := resource.RequestFrom(ctx)
	if r == nil || r.User == nil {
		return
	}
	spec.Username, spec.UID, spec.Groups = r.User.Name, r.User.UID, r.User.Groups
	for key, values := range r.User.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
}

// columns have the descriptions of the fields that they show, as of the API version that introduced
// them.
func columns() []metav1.TableColumnDefinition {
	spec, status := certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc(), certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()
	return described(kind.Columns("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), map[string]string{
		"SignerName": spec["signerName"], "Requestor": spec["request"], "RequestedDuration": spec["expirationSeconds"], "Condition": status["conditions"],
	})
}

// described adds descriptions to columns, by their names.
func described(columns []metav1.TableColumnDefinition, descriptions map[string]string) []metav1.TableColumnDefinition {
	for i := range columns {
		if text, ok := descriptions[columns[i].Name]; ok {
			columns[i].Description = text
		}
	}
	return columns
}

func row(r request) []any {
	wanted := "<none>"
	if s := r.Spec.ExpirationSeconds; s != nil {
		wanted = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	return []any{r.Name, kind.Age(r), kind.OrNone(r.Spec.SignerName), r.Spec.Username, wanted, state(r)}
}

// state is the column Condition.
func state(r request) string {
	var words []string
	switch {
	case has(r, certificatesv1.CertificateDenied):
		words = append(words, "Denied")
	case has(r, certificatesv1.CertificateApproved):
		words = append(words, "Approved")
	default:
		words = append(words, "Pending")
	}
	if has(r, certificatesv1.CertificateFailed) {
		words = append(words, "Failed")
	}
	if len(r.Status.Certificate) > 0 {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}

// has reports whether a request has a condition.
func has(r request, t certificatesv1.RequestConditionType) bool { return condition(r, t) != nil }

// condition returns the condition of a type, or nil.
func condition(r request, t certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}
