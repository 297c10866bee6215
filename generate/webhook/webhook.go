// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook makes MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations of the markers beside the code that serves them:
//
//	// +kubebuilder:webhook:path=/validate-batch-v1-job,mutating=false,failurePolicy=fail,sideEffects=None,groups=batch,resources=jobs,verbs=create;update,versions=v1,name=vjob.example.com,admissionReviewVersions=v1
package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/token"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/yaml"
)

// Options are the arguments of the generator on the command line.
type Options struct {
	HeaderFile string `marker:",optional" help:"A file to put before the output, for example a licence."`
	Year       string `marker:",optional" help:"What replaces \" YEAR\" in the header."`
}

// outputName is the file that all configurations go to.
const outputName = "manifests.yaml"

// Generator makes one file with a configuration of each sort that has webhooks.
type Generator struct{ Options Options }

const (
	hookMarker   = "kubebuilder:webhook"
	configMarker = "kubebuilder:webhookconfiguration"
)

// Markers are the definitions of the markers that the generator reads.
func Markers() []*markers.Definition {
	return []*markers.Definition{
		markers.Define[hook](hookMarker, markers.Package, markers.Help{Category: "Webhook", Summary: "How a webhook is called. Repeatable."}),
		markers.Define[configuration](configMarker, markers.Package, markers.Help{Category: "Webhook", Summary: "The name of the webhook configuration object."}),
	}
}

// Wanted reports whether any root has webhooks.
func Wanted(p *load.Program) bool {
	return slices.ContainsFunc(p.Roots, func(pkg *load.Package) bool { return p.PackageMarkers(pkg).Has(hookMarker) })
}

// Need asks for nothing: webhooks stand in comments.
func (g *Generator) Need(*load.Program) {}

// Generate makes the configurations.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	mutatingName, validatingName := "mutating-webhook-configuration", "validating-webhook-configuration"
	var mutating []admission.MutatingWebhook
	var validating []admission.ValidatingWebhook
	for _, pkg := range p.Roots {
		seen := map[bool]bool{}
		for _, marker := range p.PackageMarkers(pkg) {
			switch data := marker.Data.(type) {
			case configuration:
				if seen[data.Mutating] {
					p.Problemf(marker.Pos, "+%s: the package names the configuration twice", marker.Name)
				}
				seen[data.Mutating] = true
				if data.Name != "" && data.Mutating {
					mutatingName = data.Name
				} else if data.Name != "" {
					validatingName = data.Name
				}
			case hook:
				m, v, err := data.build()
				if err != nil {
					problems(p, marker.Pos, data.Name, err)
				}
				mutating = append(mutating, m...)
				validating = append(validating, v...)
			}
		}
	}
	slices.SortStableFunc(mutating, func(a, b admission.MutatingWebhook) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(validating, func(a, b admission.ValidatingWebhook) int { return strings.Compare(a.Name, b.Name) })

	var objects []any
	typed := func(kind string) meta.TypeMeta {
		return meta.TypeMeta{APIVersion: admission.SchemeGroupVersion.String(), Kind: kind}
	}
	if len(mutating) > 0 {
		objects = append(objects, &admission.MutatingWebhookConfiguration{
			TypeMeta: typed("MutatingWebhookConfiguration"), ObjectMeta: meta.ObjectMeta{Name: mutatingName}, Webhooks: mutating,
		})
	}
	if len(validating) > 0 {
		objects = append(objects, &admission.ValidatingWebhookConfiguration{
			TypeMeta: typed("ValidatingWebhookConfiguration"), ObjectMeta: meta.ObjectMeta{Name: validatingName}, Webhooks: validating,
		})
	}
	if len(objects) == 0 {
		return nil, nil
	}
	header, err := p.Header(g.Options.HeaderFile, g.Options.Year)
	if err != nil {
		return nil, err
	}
	out := []byte(header)
	for _, object := range objects {
		entries, err := generic(object)
		if err != nil {
			return nil, err
		}
		out = yaml.Mapping(append(out, "---\n"...), 0, entries)
	}
	return []load.Output{{Name: outputName, Data: out}}, nil
}

// problems records each of the errors that are joined in err.
func problems(p *load.Program, pos token.Pos, name string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			problems(p, pos, name, err)
		}
		return
	}
	p.Problemf(pos, "webhook %s: %v", name, err)
}

// generic turns an object into maps and lists, as JSON does.
func generic(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("marshal webhook configuration: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var entries map[string]any
	if err := decoder.Decode(&entries); err != nil {
		return nil, fmt.Errorf("marshal webhook configuration: %w", err)
	}
	if metadata, ok := entries["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return entries, nil
}
