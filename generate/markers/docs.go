// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"go/ast"
	"strings"
)

// Doc is the documentation that a doc comment holds for the users of an API:
// without its markers, up to a line that starts with "---", and without lines that
// start with "TODO", except inside a fenced code block.
func Doc(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	prose := ast.CommentGroup{List: make([]*ast.Comment, 0, len(group.List))}
	block := false
	for _, comment := range group.List {
		if !IsMarker(comment.Text) {
			prose.List = append(prose.List, comment)
			block = block || strings.HasPrefix(comment.Text, "/*")
		}
	}
	if len(prose.List) == 0 {
		return ""
	}
	text := strings.TrimSuffix(prose.Text(), "\n")
	if !block && !strings.Contains(text, "TODO") && !strings.Contains(text, "---") {
		return text
	}
	var kept []string
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if block {
			line = strings.TrimSpace(line) // block comments keep their indentation
		}
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
		}
		if !fenced {
			if strings.HasPrefix(line, "TODO") {
				continue
			}
			if strings.HasPrefix(line, "---") {
				break
			}
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
