// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/controlplane"
)

// featureGates are those of Kubernetes.
//
//go:embed flags/feature-gates.txt
var featureGates string

// gate is one of Kubernetes.
type gate struct{ on, locked bool }

// gates returns those of Kubernetes by their names.
func gates() map[string]gate {
	out := map[string]gate{}
	for line := range strings.Lines(featureGates) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "#" {
			out[fields[0]] = gate{on: fields[1] == "true", locked: len(fields) > 2}
		}
	}
	return out
}

// gatedPlugins are the admission plugins that do what a gate switches on, and nothing else.
func gatedPlugins() map[string]string {
	return map[string]string{
		"MutatingAdmissionPolicy":    "MutatingAdmissionPolicy",
		"PodTopologyLabelsAdmission": "PodTopologyLabels",
	}
}

// setGates takes over the values of --feature-gates. What is on and off by default is so here. A
// gate that is off leaves out the plugin that does what it switches on; any other change is refused.
func setGates(values []string, o *controlplane.Options) error {
	known, plugins := gates(), gatedPlugins()
	for _, text := range values {
		name, on, err := assignment(text)
		if err != nil {
			return fmt.Errorf("--feature-gates: %w", err)
		}
		name = strings.TrimPrefix(name, "kube:") // the component, which may be named
		g, there := known[name]
		switch {
		case name == "AllAlpha" && !on, there && g.on == on:
		case name == "AllAlpha", name == "AllBeta":
			return fmt.Errorf("--feature-gates: %s=%t: gates are changed here one by one: name those that you need", name, on)
		case !there:
			return fmt.Errorf("--feature-gates: Kubernetes 1.37 has no feature gate %q", name)
		case g.locked:
			return fmt.Errorf("--feature-gates: cannot set feature gate %s to %t, feature is locked to %t", name, on, g.on)
		case !on && plugins[name] != "":
			o.Disable = append(o.Disable, plugins[name])
		case on:
			return fmt.Errorf("--feature-gates: what %s switches on is not implemented: leave it out", name)
		default:
			return fmt.Errorf("--feature-gates: what %s switches off stays on here: leave it out", name)
		}
	}
	return nil
}

// readRuntimeConfig reads the values of --runtime-config, and returns the optional versions that they
// ask for. They can also ask for what is served anyway, and be without what is not; any other version
// is refused.
func readRuntimeConfig(values []string, notes io.Writer) (serve []string, err error) {
	const flag = "--runtime-config"
	for _, text := range values {
		if !strings.Contains(text, "=") {
			text += "=true" // as in kube-apiserver
		}
		name, on, err := assignment(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		switch name {
		case "api/all", "api/ga", "api/beta", "api/alpha":
			stable := name == "api/all" || name == "api/ga"
			if stable && !on {
				return nil, fmt.Errorf("%s: %s=false: what is served cannot be left out", flag, name)
			}
			if on && (name == "api/all" || name == "api/beta") {
				serve = append(serve, controlplane.OptionalVersions()...)
			}
			if on && name != "api/ga" {
				fmt.Fprintf(notes, "steer: %s: %s=true: of alpha and beta versions %v alone is served\n", flag, name, controlplane.OptionalVersions())
			}
			continue
		}
		if slices.Contains(controlplane.OptionalVersions(), versionOf(name)) {
			if on {
				serve = append(serve, versionOf(name))
			}
			continue
		}
		switch served := slices.Contains(controlplane.Versions(), versionOf(name)); {
		case on && !served:
			return nil, fmt.Errorf("%s: %s is not served: leave it out", flag, name)
		case !on && served:
			return nil, fmt.Errorf("%s: %s=false: what is served cannot be left out", flag, name)
		}
	}
	return serve, nil
}

// versionOf returns the group and version of "v1", "GROUP/VERSION" and "GROUP/VERSION/RESOURCE".
func versionOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) == 2 && parts[0] == "api" {
		return parts[1] // "api/v1"
	}
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// assignment reads NAME=true or NAME=false.
func assignment(text string) (name string, on bool, err error) {
	name, value, _ := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); name != "" {
		if on, err = strconv.ParseBool(strings.TrimSpace(value)); err == nil {
			return name, on, nil
		}
	}
	return "", false, fmt.Errorf("%q: write NAME=true or NAME=false", text)
}
