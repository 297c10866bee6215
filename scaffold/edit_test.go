// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/project"
)

// TestGroupsJoinAProjectOfOneGroup: what is there stays where it is, and is found there.
func TestGroupsJoinAProjectOfOneGroup(t *testing.T) {
	t.Parallel()
	dir := initialized(t, InitOptions{})
	namespace := kindOf("core", "v1", "Namespace")
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	create(t, APIOptions{Dir: dir, GVK: namespace, NoResource: true, NoGenerate: true})
	report, err := Edit(t.Context(), EditOptions{Dir: dir, MultiGroup: true})
	if err != nil || !slices.Equal(report.Changed, []string{project.File}) {
		t.Fatal(err, report)
	}
	if _, err := Edit(t.Context(), EditOptions{Dir: dir}); !errors.Is(err, project.ErrUsage) {
		t.Errorf("folders by group are taken from kinds: %v", err)
	}
	other := kindOf("ship", "v1", "Guestbook") // the same name in another group
	create(t, APIOptions{Dir: dir, GVK: other, NoGenerate: true})
	create(t, APIOptions{Dir: dir, GVK: kindOf("webapp", "v1", "Policy"), NoGenerate: true})
	create(t, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true})
	before := tree(t, dir)
	for _, gvk := range []project.GVK{guestbook("v1"), other, guestbook("v2")} {
		createWebhook(t, WebhookOptions{Dir: dir, GVK: gvk, Defaulting: true, NoGenerate: gvk != guestbook("v2")}) // once for all
	}
	now := tree(t, dir)
	for _, name := range []string{
		"api/v1/policy_types.go", "api/ship/v1/guestbook_types.go", "api/webapp/v2/guestbook_types.go",
		"internal/controller/namespace_controller.go", "internal/controller/guestbook_controller.go", "internal/controller/ship/guestbook_controller.go", "internal/controller/webapp/policy_controller.go",
		"internal/webhook/ship/v1/guestbook_webhook.go", "internal/webhook/webapp/v2/guestbook_webhook.go",
		"config/samples/v1_guestbook.yaml", "config/samples/ship_v1_guestbook.yaml",
	} {
		if _, ok := now[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	for name, calls := range map[string]int{"internal/controller/guestbook_controller_test.go": 2, "internal/controller/ship/guestbook_controller_test.go": 1} {
		if strings.Count(now[name], "SetupGuestbookWebhookWithManager(m)") != calls {
			t.Errorf("the webhooks are not in the test:\n%s", now[name])
		}
	}
	if runsProjects() {
		program(t, dir, "go", "mod", "tidy")
		program(t, dir, "go", "test", "./...")
	}
	for _, gvk := range []project.GVK{guestbook("v1"), other, guestbook("v2")} {
		if report, err := DeleteWebhook(t.Context(), DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil || len(report.Notes) > 0 {
			t.Error(err, report)
		}
	}
	for name, text := range tree(t, dir) {
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "zz_generated") && text != before[name] {
			t.Errorf("after the webhooks were deleted, %s is\n%s\nand was\n%s", name, text, before[name])
		}
	}
	for _, gvk := range []project.GVK{namespace, guestbook("v2"), guestbook("v1")} {
		if report, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil || len(report.Notes) > 0 {
			t.Error(err, report)
		}
	}
	now = tree(t, dir)
	for _, name := range []string{"api/v1/guestbook_types.go", "internal/controller/guestbook_controller.go", "internal/controller/namespace_controller.go", "config/samples/v1_guestbook.yaml"} {
		if _, ok := now[name]; ok {
			t.Errorf("%s is left", name)
		}
	}
	if runsProjects() {
		compiles(t, dir, "./...")
	}
}
