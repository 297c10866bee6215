// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// define returns a definition in a group with names that start with kind.
func define(kind string, change ...func(*v1.CustomResourceDefinition)) *v1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	crd := &v1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: v1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: v1.NamespaceScoped,
			Names: v1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
		},
	}
	for _, c := range change {
		c(crd)
	}
	return crd
}

func short(names ...string) func(*v1.CustomResourceDefinition) {
	return func(c *v1.CustomResourceDefinition) { c.Spec.Names.ShortNames = names }
}

// conditions renders conditions, one "type=status reason: message" each.
func conditions(crd *v1.CustomResourceDefinition) []string {
	var out []string
	for _, c := range crd.Status.Conditions {
		out = append(out, string(c.Type)+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

func TestNamesAreAcceptedFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	first := define("Widget", short("w"))
	settle(first, taken{})
	want := []string{
		"NamesAccepted=True NoConflicts: no conflicts found",
		"Established=True InitialNamesAccepted: the initial names have been accepted",
	}
	if diff := cmp.Diff(want, conditions(first)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first.Spec.Names, first.Status.AcceptedNames); diff != "" {
		t.Errorf("accepted names (-want +got):\n%s", diff)
	}

	second := define("Window", short("x", "w", "widget"))
	settle(second, takenBy([]*v1.CustomResourceDefinition{first}))
	want = []string{
		`NamesAccepted=False ShortNamesConflict: ["w" is already in use, "widget" is already in use]`,
		"Established=False NotAccepted: not all names are accepted",
	}
	if diff := cmp.Diff(want, conditions(second)); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
	if second.Status.AcceptedNames.Kind != "Window" || second.Status.AcceptedNames.ShortNames != nil {
		t.Errorf("accepted %+v: want all but the short names", second.Status.AcceptedNames)
	}

	settle(second, taken{}) // the first one has gone
	want = []string{
		"NamesAccepted=True NoConflicts: no conflicts found",
		"Established=True InitialNamesAccepted: the initial names have been accepted",
	}
	if diff := cmp.Diff(want, conditions(second)); diff != "" {
		t.Errorf("second, later (-want +got):\n%s", diff)
	}
}

func TestDefinitionsWithoutValidTrustAreNotEstablished(t *testing.T) {
	t.Parallel()
	crd := define("Widget", func(c *v1.CustomResourceDefinition) {
		c.Spec.Conversion = &v1.CustomResourceConversion{Strategy: v1.WebhookConverter, Webhook: &v1.WebhookConversion{
			ClientConfig: &v1.WebhookClientConfig{CABundle: []byte("nonsense")},
		}}
	})
	settle(crd, taken{})
	want := []string{
		"NamesAccepted=True NoConflicts: no conflicts found",
		"Established=False InvalidCABundle: The conversion webhook CABundle is invalid",
	}
	if diff := cmp.Diff(want, conditions(crd)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestSettleIsIdempotent(t *testing.T) {
	t.Parallel()
	crd := define("Widget")
	settle(crd, taken{})
	before := crd.DeepCopy()
	settle(crd, taken{})
	if diff := cmp.Diff(before, crd); diff != "" {
		t.Error(diff)
	}
}

func TestNamesInUseAreReportedByReason(t *testing.T) {
	t.Parallel()
	first := define("Widget", short("w"))
	settle(first, taken{})
	for want, names := range map[string]v1.CustomResourceDefinitionNames{
		`PluralConflict: "w" is already in use`:            {Plural: "w", Singular: "x", Kind: "X", ListKind: "XList"},
		`SingularConflict: "widgets" is already in use`:    {Plural: "xs", Singular: "widgets", Kind: "X", ListKind: "XList"},
		`ShortNamesConflict: "w" is already in use`:        {Plural: "xs", Singular: "x", ShortNames: []string{"v", "w"}, Kind: "X", ListKind: "XList"},
		`KindConflict: "WidgetList" is already in use`:     {Plural: "xs", Singular: "x", Kind: "WidgetList", ListKind: "XList"},
		`ListKindConflict: "Widget" is already in use`:     {Plural: "xs", Singular: "x", Kind: "X", ListKind: "Widget"},
		`ListKindConflict: "WidgetList" is already in use`: {Plural: "widgets", Singular: "widget", ShortNames: []string{"w"}, Kind: "Widget", ListKind: "WidgetList"},
		`NoConflicts: no conflicts found`:                  {Plural: "xs", Singular: "Widget", Kind: "w", ListKind: "widgets"},
	} {
		second := define("X", func(c *v1.CustomResourceDefinition) { c.Spec.Names = names })
		settle(second, takenBy([]*v1.CustomResourceDefinition{first}))
		status := map[bool]string{true: "True", false: "False"}[strings.HasPrefix(want, "NoConflicts")]
		if diff := cmp.Diff("NamesAccepted="+status+" "+want, conditions(second)[0]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestNamesThatWereAcceptedAreKept(t *testing.T) {
	t.Parallel()
	crd := define("Widget", short("w"))
	settle(crd, taken{})
	want := crd.Status.AcceptedNames
	crd.Spec.Names = v1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "thing", ShortNames: []string{"t"}, Kind: "Thing", ListKind: "ThingList", Categories: []string{"all"}}
	want.Categories = []string{"all"}
	other := define("Thing", short("t", "w"))
	other.Spec.Names.Plural = "widgets" // which both accepted at the same time
	settle(other, taken{})
	settle(crd, takenBy([]*v1.CustomResourceDefinition{other}))
	if diff := cmp.Diff(want, crd.Status.AcceptedNames); diff != "" {
		t.Errorf("accepted names (-want +got):\n%s", diff)
	}
	if got := strings.Join(conditions(crd), "\n"); !strings.Contains(got, "NamesAccepted=False") || !strings.Contains(got, "Established=True") {
		t.Errorf("conditions:\n%s", got)
	}
}

func TestApprovalFollowsTheAnnotation(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string]string{
		"https://github.com/kubernetes/kubernetes/pull/1": "KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation: approved in https://github.com/kubernetes/kubernetes/pull/1",
		"unapproved": `KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation: not approved: "unapproved"`,
		"":           `KubernetesAPIApprovalPolicyConformant=False MissingAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`,
		"soon":       `KubernetesAPIApprovalPolicyConformant=False InvalidAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`,
	} {
		crd := define("Widget", func(c *v1.CustomResourceDefinition) {
			c.Spec.Group = "widgets.k8s.io"
			c.Annotations = map[string]string{v1.KubeAPIApprovedAnnotation: annotation}
		})
		settle(crd, taken{})
		if diff := cmp.Diff(want, conditions(crd)[0]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", annotation, diff)
		}
		if got := conditions(crd)[2]; !strings.HasPrefix(got, "Established=True ") {
			t.Errorf("%q: %s", annotation, got)
		}
	}
}
