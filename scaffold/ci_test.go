// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestWorkflowRunsForBranches: a tag has no branch that lint could compare with. The page
// shows the same workflow.
func TestWorkflowRunsForBranches(t *testing.T) {
	t.Parallel()
	text, err := fill("ci.yml", nil)
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		On struct {
			Push struct {
				Branches []string `yaml:"branches"`
			} `yaml:"push"`
		} `yaml:"on"`
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	branches := workflow.On.Push.Branches
	if len(branches) != 1 || !strings.Contains(string(text), `--against "origin/${GITHUB_BASE_REF:-`+branches[0]+`}"`) {
		t.Errorf("pushes to %v run it, and lint compares with another branch:\n%s", branches, text)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```yaml\n"+string(text)+"```\n") {
		t.Errorf("docs/ci.md does not show the workflow:\n%s", text)
	}
}
