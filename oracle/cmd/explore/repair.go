// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/wiretest"
)

// repair leaves out of a definition what Steer finds wrong with it, and reports whether that
// was enough. Both servers are asked about the definitions that come of it.
func (c *customs) repair(ctx context.Context, definition map[string]any) (bool, error) {
	for range 12 {
		body, err := yaml.Marshal(definition)
		if err != nil {
			return false, err
		}
		script, err := wiretest.Parse("repair", []byte("-- r --\nPOST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All\n@keep details.causes\n\n"+
			strings.ReplaceAll(string(body), groupMark, "repair.example.com")))
		if err != nil {
			return false, err
		}
		answers, err := c.pair.steer.Run(ctx, script)
		if err != nil {
			return false, err
		}
		head, text, _ := strings.Cut(answers[0].Text, "\n\n")
		if strings.HasPrefix(head, "201 ") {
			return true, nil
		}
		var refusal struct {
			Details struct{ Causes []struct{ Field string } }
		}
		if yaml.Unmarshal([]byte(text), &refusal) != nil || len(refusal.Details.Causes) == 0 {
			return false, nil
		}
		for _, cause := range refusal.Details.Causes {
			leaveOut(definition, cause.Field)
		}
	}
	return false, nil
}

var pathStep = regexp.MustCompile(`\.?([^.\[\]]+)|\[([^\]]*)\]`)

// leaveOut deletes what a path leads to, or the rule, or the schema, that it belongs to.
func leaveOut(definition map[string]any, path string) {
	if rest, ok := strings.CutPrefix(path, "spec.validation."); ok { // what all versions have alike
		versions, _ := definition["spec"].(map[string]any)["versions"].([]any)
		for i := range versions {
			leaveOut(definition, fmt.Sprintf("spec.versions[%d].schema.%s", i, rest))
		}
		return
	}
	var steps []string
	for _, match := range pathStep.FindAllStringSubmatch(path, -1) {
		steps = append(steps, match[1]+match[2])
	}
	var at any = definition
	// outer is the last object on the way that may do without what comes next.
	outer, key := map[string]any(nil), ""
	for i, step := range steps {
		switch inner := at.(type) {
		case map[string]any:
			if i >= 3 && optional[step] || i > 0 && steps[i-1] == "properties" {
				outer, key = inner, step
			}
			at = inner[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(inner) {
				at = nil
				break
			}
			at = inner[n]
		}
	}
	if outer == nil {
		return
	}
	if key == "items" {
		outer["items"] = map[string]any{"type": "string"}
		for _, name := range []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations", "default"} {
			delete(outer, name)
		}
		return
	}
	delete(outer, key)
	if strings.HasPrefix(key, "x-kubernetes-list") {
		delete(outer, "x-kubernetes-list-type")
		delete(outer, "x-kubernetes-list-map-keys")
	}
}

var optional = map[string]bool{"x-kubernetes-validations": true, "default": true, "selectableFields": true, "additionalPrinterColumns": true, "subresources": true, "items": true,
	"x-kubernetes-list-type": true, "x-kubernetes-list-map-keys": true, "required": true, "format": true, "anyOf": true, "oneOf": true, "allOf": true, "not": true,
	"nullable": true, "additionalProperties": true, "x-kubernetes-map-type": true, "maximum": true, "enum": true}
