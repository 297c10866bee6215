// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzPlainNames holds that what is taken for right has nothing wrong with it.
func FuzzPlainNames(f *testing.F) {
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
			"label":     {PlainLabel(text), validation.IsDNS1123Label},
			"subdomain": {PlainSubdomain(text), validation.IsDNS1123Subdomain},
			"qualified": {plainQualified(text), validation.IsQualifiedName},
			"value":     {plainName(text), validation.IsValidLabelValue},
			"port":      {PlainPortName(text), validation.IsValidPortName},
			"key":       {PlainKey(text), validation.IsConfigMapKey},
		} {
			if problems := rule.rule(text); rule.plain && len(problems) > 0 {
				t.Errorf("%q is taken for a %s: %v", text, name, problems)
			}
		}
	})
}

// TestPlainNameAcceptsUsualNames holds that the short cut is taken.
func TestPlainNameAcceptsUsualNames(t *testing.T) {
	t.Parallel()
	if !PlainLabel("app-1") || !PlainSubdomain("app-1.example.com") || !plainQualified("app.kubernetes.io/name") || !plainQualified("cpu") ||
		!plainName("5d4f8c7b9d") || !PlainPortName("http") || !PlainKey("config.yaml") {
		t.Error("usual names are left to the rules")
	}
}
