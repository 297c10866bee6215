// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane"
)

func TestFeatureGatesAreHonouredOrRefusedByName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		gates  []string
		leaves []string // out
		err    string   // empty: none
	}{
		{[]string{"WatchList=true", "kube:OpenAPIEnums=true", "AllAlpha=false", "CBORServingAndStorage=false"}, nil, ""},
		{[]string{"PodTopologyLabelsAdmission=false", "MutatingAdmissionPolicy = false"}, []string{"PodTopologyLabels", "MutatingAdmissionPolicy"}, ""},
		{[]string{"WatchList=false"}, nil, "what WatchList switches off stays on here: leave it out"},
		{[]string{"CBORServingAndStorage=true"}, nil, "what CBORServingAndStorage switches on is not implemented: leave it out"},
		{[]string{"AllBeta=true"}, nil, "name those that you need"},
		{[]string{"AllAlpha=true"}, nil, "name those that you need"},
		{[]string{"InPlacePodVerticalScaling=false"}, nil, "cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true"},
		{[]string{"WatchLists=true"}, nil, `Kubernetes 1.37 has no feature gate "WatchLists"`},
		{[]string{"WatchList"}, nil, `"WatchList": write NAME=true or NAME=false`},
		{[]string{"=true"}, nil, `"=true": write NAME=true or NAME=false`},
	} {
		var o controlplane.Options
		err := setGates(test.gates, &o)
		if !slices.Equal(o.Disable, test.leaves) || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: left out are %q, %v; want %q, %s", test.gates, o.Disable, err, test.leaves, test.err)
		}
	}
	for name, plugin := range gatedPlugins() {
		if g, known := gates()[name]; !known || !g.on || g.locked || !slices.Contains(controlplane.Plugins(), plugin) {
			t.Errorf("the gate %s, %+v, cannot leave %s out", name, g, plugin)
		}
	}
}

func TestRuntimeConfigNamesWhatIsServed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // an error; empty: none
		"v1=true":                             "",
		"api/v1":                              "",
		"apps/v1":                             "",
		"apps/v1/deployments=true":            "",
		"apiextensions.k8s.io/v1=true":        "",
		"apiregistration.k8s.io/v1=true":      "",
		"networking.k8s.io/v1beta1=false":     "",
		"api/alpha=false":                     "",
		"api/ga=true":                         "",
		"networking.k8s.io/v1beta1=true":      "networking.k8s.io/v1beta1 is not served: leave it out",
		"networking.k8s.io/v1beta1/ipaddress": "is not served: leave it out",
		"batch/v1=false":                      "batch/v1=false: what is served cannot be left out",
		"api/all=false":                       "api/all=false: what is served cannot be left out",
		"apps/v1=maybe":                       "write NAME=true or NAME=false",
	} {
		var notes strings.Builder
		_, err := readRuntimeConfig([]string{text}, &notes)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || notes.Len() > 0 {
			t.Errorf("%s: %v, %q, want %q", text, err, notes.String(), want)
		}
	}
	var notes strings.Builder
	serve, err := readRuntimeConfig([]string{"api/all=true"}, &notes)
	if err != nil || !slices.Equal(serve, controlplane.OptionalVersions()) || !strings.Contains(notes.String(), "api/all=true: of alpha and beta versions [admissionregistration.k8s.io/v1beta1] alone is served") {
		t.Errorf("api/all=true: %v, %v, %q", serve, err, notes.String())
	}
	for text, want := range map[string][]string{
		"admissionregistration.k8s.io/v1beta1":                                controlplane.OptionalVersions(),
		"admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies=true": controlplane.OptionalVersions(),
		"admissionregistration.k8s.io/v1beta1=false":                          nil,
		"api/beta=true": controlplane.OptionalVersions(),
	} {
		if serve, err := readRuntimeConfig([]string{text}, io.Discard); err != nil || !slices.Equal(serve, want) {
			t.Errorf("%s: %v, %v, want %v", text, serve, err, want)
		}
	}
}
