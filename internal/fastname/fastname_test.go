// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fastname_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/internal/fastname"
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
			"label":     {fastname.Label(text), validation.IsDNS1123Label},
			"subdomain": {fastname.Subdomain(text), validation.IsDNS1123Subdomain},
			"qualified": {fastname.Qualified(text), validation.IsQualifiedName},
			"value":     {fastname.LabelValue(text), validation.IsValidLabelValue},
			"port":      {fastname.PortName(text), validation.IsValidPortName},
			"key":       {fastname.Key(text), validation.IsConfigMapKey},
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
	if !fastname.Label("app-1") || !fastname.Subdomain("app-1.example.com") || !fastname.Qualified("app.kubernetes.io/name") || !fastname.Qualified("cpu") ||
		!fastname.LabelValue("5d4f8c7b9d") || !fastname.PortName("http") || !fastname.Key("config.yaml") {
		t.Error("usual names are left to the rules")
	}
}
