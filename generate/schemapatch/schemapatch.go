// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schemapatch puts the schemas of Go types into CustomResourceDefinitions
// that are otherwise written by hand.
package schemapatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/schema"
)

// Options are the arguments of the schemapatch generator on the command line.
type Options struct {
	Manifests        string `help:"The directory with the definitions to put schemas into."`
	MaxDescLen       *int   `help:"Shorten descriptions to this many bytes, at a sentence or word; 0 removes them."`
	EmbeddedMetadata bool   `marker:"generateEmbeddedObjectMeta,optional" help:"Give embedded metadata (in templates) a schema, so that it is not pruned."`
}

// Generator puts the schemas of Go types into definitions that are otherwise written
// by hand; all else in them, order and comments included, stays.
type Generator struct{ Options Options }

// Need asks the program for the kinds' types.
func (g *Generator) Need(p *load.Program) { (&crd.Generator{}).Need(p) }

// manifest is a definition on disk.
type manifest struct {
	name        string
	group, kind string
	document    yaml.Node
}

// Generate makes the patched definitions.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	manifests, err := readManifests(p.Rooted(g.Options.Manifests))
	if err != nil {
		return nil, err
	}
	flat := crd.NewSchemas(p, crd.Options{EmbeddedMetadata: g.Options.EmbeddedMetadata})
	kinds := crd.Kinds(p)
	var outputs []load.Output
	for _, m := range manifests {
		schemas := map[string]*schema.Schema{}
		for _, kind := range kinds {
			if kind.Group == m.group && kind.Spec.Name.Name == m.kind && m.version(kind.Version) != nil {
				schemas[kind.Version] = flat.Of(kind)
			}
		}
		if len(schemas) > 0 {
			if err := m.patch(schemas, g.Options.MaxDescLen); err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
		}
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := errors.Join(encoder.Encode(&m.document), encoder.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		outputs = append(outputs, load.Output{Name: m.name, Data: out.Bytes()})
	}
	return outputs, nil
}

// readManifests reads the definitions in a directory; other files are passed over.
func readManifests(dir string) ([]*manifest, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var found []*manifest
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		var head struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Spec       struct {
				Group string
				Names struct{ Kind string }
			}
		}
		m := &manifest{name: entry.Name()}
		if yaml.Unmarshal(text, &head) != nil || head.Kind != "CustomResourceDefinition" || head.APIVersion == "" {
			continue
		}
		if head.APIVersion != "apiextensions.k8s.io/v1" {
			return nil, fmt.Errorf("schemapatch: %s: apiVersion %q is not supported", filepath.Join(dir, m.name), head.APIVersion)
		}
		if err := yaml.Unmarshal(text, &m.document); err != nil {
			return nil, fmt.Errorf("schemapatch: %s: %w", filepath.Join(dir, m.name), err)
		}
		m.group, m.kind = head.Spec.Group, head.Spec.Names.Kind
		found = append(found, m)
	}
	return found, nil
}

// versions are the entries of spec.versions.
func (m *manifest) versions() []*yaml.Node {
	list := value(value(m.document.Content[0], "spec"), "versions")
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}

func (m *manifest) version(name string) *yaml.Node {
	for _, version := range m.versions() {
		if n := value(version, "name"); n != nil && n.Value == name {
			return version
		}
	}
	return nil
}

// patch puts the schemas in and removes those of versions that have no type.
func (m *manifest) patch(schemas map[string]*schema.Schema, maxDescription *int) error {
	remove(value(m.document.Content[0], "spec"), "validation")
	for _, version := range m.versions() {
		name := value(version, "name")
		if name == nil || name.Value == "" {
			return errors.New("spec.versions holds a version without a name")
		}
		s := schemas[name.Value]
		if s == nil {
			remove(version, "schema")
			continue
		}
		text, err := json.Marshal(s.Props(maxDescription))
		if err != nil {
			return err
		}
		var node yaml.Node
		if err := yaml.Unmarshal(text, &node); err != nil {
			return err
		}
		plainStyle(&node)
		holder := value(version, "schema")
		if holder == nil {
			holder = &yaml.Node{Kind: yaml.MappingNode}
			put(version, "schema", holder)
		}
		if old := value(holder, "openAPIV3Schema"); old != nil {
			*old = *node.Content[0]
		} else {
			put(holder, "openAPIV3Schema", node.Content[0])
		}
	}
	return nil
}

// value returns what a key of a mapping holds, nil if there is no such key.
func value(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func put(mapping *yaml.Node, key string, value *yaml.Node) {
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: key}
	mapping.Content = append(mapping.Content, name, value)
}

func remove(mapping *yaml.Node, key string) {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			return
		}
	}
}

// plainStyle lets the encoder choose how each scalar is written.
func plainStyle(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		plainStyle(child)
	}
}
