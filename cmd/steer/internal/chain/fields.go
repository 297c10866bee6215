// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/trace"
)

// mostFields bounds the fields of one version.
const mostFields = 200

// content is an object for [trace.Differ].
type content map[string]any

// UnstructuredContent returns the object.
func (c content) UnstructuredContent() map[string]any { return c }

// differences are the fields in which two versions differ. The values of Secrets are
// left out.
func differences(before, now map[string]any, object trace.Object) []Field {
	if before == nil || now == nil {
		return nil
	}
	differ := trace.Differ{Most: mostFields}
	var out []Field
	for path := range strings.SplitSeq(differ.Changed(content(before), content(now)), ",") {
		switch {
		case path == "":
		case object.Group == "" && object.Kind == "Secret":
			out = append(out, Field{Path: path})
		default:
			field := Field{Path: path}
			field.Old, _ = valueAt(before, path)
			field.New, _ = valueAt(now, path)
			out = append(out, field)
		}
	}
	return out
}

// parts of a path: "metadata.labels[a.b].c[0]" has metadata, labels, a.b, c and 0.
func parts(path string) (out []string) {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, after, _ := strings.Cut(rest, "]")
			out, path = append(out, strings.Trim(key, "'\"")), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(out, path)
		}
		if end > 0 {
			out = append(out, path[:end])
		}
		path = strings.TrimPrefix(path[end:], ".")
	}
	return out
}

// valueAt returns what an object has at a path.
func valueAt(object map[string]any, path string) (any, bool) {
	var at any = object
	for _, part := range parts(path) {
		switch in := at.(type) {
		case map[string]any:
			next, ok := in[part]
			if !ok {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			at = in[i]
		default:
			return nil, false
		}
	}
	return at, true
}

func revisionOf(object map[string]any) int64 {
	metadata, _ := object["metadata"].(map[string]any)
	text, _ := metadata["resourceVersion"].(string)
	revision, _ := strconv.ParseInt(text, 10, 64) // no revision is 0
	return revision
}

func managedFields(object map[string]any) (entries []map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	for _, entry := range list {
		if entry, ok := entry.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// Value is a value in one line.
func Value(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return Plain(string(text))
}

// Plain is a text without control characters, cut where it is long: what comes from
// servers and records may have been made to confuse a terminal.
func Plain(text string) string { return plain(text, 300) }

// PlainWhole is Plain for messages that are to be read as a whole, within 16 KiB.
func PlainWhole(text string) string { return plain(text, 16<<10) }

func plain(text string, most int) string {
	var out strings.Builder
	for i, r := range text {
		if i > most {
			return out.String() + "..."
		}
		if strconv.IsPrint(r) {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return out.String()
}
