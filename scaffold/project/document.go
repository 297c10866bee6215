// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is a file in YAML that people write. The errors about it have the form
// FILE:LINE: PROBLEM, and wrap [ErrUsage].
type Document struct {
	file string
	text []byte
	root yaml.Node
}

// ParseDocument reads the nodes of a file, which has one document or none.
func ParseDocument(file string, text []byte) (*Document, error) {
	d := &Document{file: file, text: text}
	if err := yaml.Unmarshal(text, &d.root); err != nil {
		return nil, d.failure(err)
	}
	return d, nil
}

// CheckDocuments reads a file of any number of documents, which are mappings, for mistakes.
func CheckDocuments(file string, text []byte) error {
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var content map[string]any
		switch err := decoder.Decode(&content); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return (&Document{file: file, text: text}).failure(err)
		}
	}
}

// Decode decodes the document. Fields that a struct does not have are passed over.
func (d *Document) Decode(to any) error {
	if err := d.root.Decode(to); err != nil {
		return d.failure(err)
	}
	return nil
}

// DecodeStrict decodes the document, and refuses fields that a struct does not have.
func (d *Document) DecodeStrict(to any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	decoder.KnownFields(true)
	if err := decoder.Decode(to); err != nil && !errors.Is(err, io.EOF) {
		return d.failure(err)
	}
	return nil
}

// Find returns the node at a path of keys, nil if there is none.
func (d *Document) Find(path ...string) *yaml.Node {
	if len(d.root.Content) == 0 {
		return nil
	}
	node := d.root.Content[0]
	for _, key := range path {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		i := entry(node, key)
		if node.Kind != yaml.MappingNode || i < 0 {
			return nil
		}
		node = node.Content[i+1]
	}
	return node
}

// Errorf is an error about what is at a path of keys, or about the nearest that is there.
func (d *Document) Errorf(path []string, format string, args ...any) error {
	line := 1
	for i := range path {
		if node := d.Find(path[:i+1]...); node != nil {
			line = node.Line
		}
	}
	return Usagef("%s:%d: %s", d.file, line, fmt.Sprintf(format, args...))
}

var (
	yamlLine  = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlField = regexp.MustCompile(`^field (\S+) not found in type \S+$`)
)

// failure makes an error of the library one of the file, in one line.
func (d *Document) failure(err error) error {
	problems := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		problems = typed.Errors
	}
	for i, problem := range problems {
		place := d.file
		if match := yamlLine.FindStringSubmatch(strings.ReplaceAll(problem, "\n", " ")); match != nil {
			place, problem = fmt.Sprintf("%s:%d", place, d.line(match[1], match[2])), match[2]
		}
		if match := yamlField.FindStringSubmatch(problem); match != nil {
			problem = fmt.Sprintf("unknown field %q", match[1])
		}
		problems[i] = place + ": " + problem
	}
	return Usagef("%s", strings.Join(problems, "; "))
}

// line is the number of the line that the library names. Where something is missing, it
// counts from 0.
func (d *Document) line(named, problem string) int {
	line, _ := strconv.Atoi(named)
	if strings.HasPrefix(problem, "did not find expected") {
		line++
	}
	return min(line, 1+bytes.Count(bytes.TrimRight(d.text, "\n"), []byte("\n")))
}
