// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzFastNames holds that what is taken for right has nothing wrong with it.
func FuzzFastNames(f *testing.F) {
	for _, seed := range []string{
		"", "a", "-a", "a-", "a--b", "a.b", "a..b", ".a", "a.", "A", "a_b", "example.com/name", "/a", "a/", "a/b/c", "é", "80", "8a", "a\n", "..", "a..b.c",
		strings.Repeat("a", 15), strings.Repeat("a", 16), strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 127) + "a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, rule := range map[string]struct {
			plain bool
			rule  func(string) []string
		}{
			"label":     {FastLabel(text), validation.IsDNS1123Label},
			"subdomain": {FastSubdomain(text), validation.IsDNS1123Subdomain},
			"qualified": {fastQualified(text), validation.IsQualifiedName},
			"value":     {fastName(text), validation.IsValidLabelValue},
			"port":      {FastPortName(text), validation.IsValidPortName},
			"key":       {FastKey(text), validation.IsConfigMapKey},
		} {
			if problems := rule.rule(text); rule.plain && len(problems) > 0 {
				t.Errorf("%q is taken for a %s: %v", text, name, problems)
			}
		}
	})
}

// TestFastNameAcceptsUsualNames holds that the fast path is taken.
func TestFastNameAcceptsUsualNames(t *testing.T) {
	t.Parallel()
	if !FastLabel("app-1") || !FastSubdomain("app-1.example.com") || !fastQualified("app.kubernetes.io/name") || !fastQualified("cpu") ||
		!fastName("5d4f8c7b9d") || !FastPortName("http") || !FastKey("config.yaml") {
		t.Error("usual names are left to the rules")
	}
}
