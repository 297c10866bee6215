// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package project is what steer init, create and delete know of a project: the file PROJECT,
// the names of its kinds, and what a command has done.
package project

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the name of the file that says what a project is made of.
const File = "PROJECT"

// Folders of a project, with slashes.
const (
	// CRDDir has the CustomResourceDefinitions that are generated.
	CRDDir = "config/crd/bases"
	// ExternalCRDDir has those of kinds of other modules, for tests.
	ExternalCRDDir = "config/crd/external"
	// ExtrasDir has manifests of the project's own, such as policies and dashboards.
	ExtrasDir = "config/extras"
	// StateDir is for what is not part of the project: control planes, keys, builds.
	StateDir = ".steer"
	// RecordsDir is where steer dev has the operator keep the records of its reconciles.
	RecordsDir = StateDir + "/records"
)

const (
	// Version is the version of the file: kubebuilder's current one.
	Version = "3"
	// LeanLayout is the layout of the trees that steer init writes.
	LeanLayout = "lean.steer.dev/v1"
	// KubebuilderLayout is the layout with kustomizations in the folder config.
	KubebuilderLayout = "kubebuilder.steer.dev/v1"
)

// Project is what PROJECT says. Fields that are not here, and comments, are kept when
// it is written.
type Project struct {
	Domain     string     `yaml:"domain,omitempty"`
	Layout     Layout     `yaml:"layout,omitempty"`
	MultiGroup bool       `yaml:"multigroup,omitempty"`
	Name       string     `yaml:"projectName,omitempty"`
	Repo       string     `yaml:"repo,omitempty"`
	Resources  []Resource `yaml:"resources,omitempty"`
	// Served are the kinds of the custom API server of the project. Their API has no version
	// of CRDs.
	Served  []Resource `yaml:"served,omitempty"`
	Version string     `yaml:"version"`

	document yaml.Node // as it was read
}

// Layout is a list of plugins, which wrote the files of the project. Old projects have one that
// is no list.
type Layout []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Layout) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*l = Layout{node.Value}
		return nil
	}
	return node.Decode((*[]string)(l))
}

// Resource is a kind with what the project has for it.
type Resource struct {
	API        *API      `yaml:"api,omitempty"` // nil for a kind of another module
	Controller bool      `yaml:"controller,omitempty"`
	Core       bool      `yaml:"core,omitempty"` // of k8s.io/api
	Domain     string    `yaml:"domain,omitempty"`
	External   bool      `yaml:"external,omitempty"` // of another module; never changed
	Group      string    `yaml:"group,omitempty"`
	Kind       string    `yaml:"kind"`
	Module     string    `yaml:"module,omitempty"` // that has an external kind; never changed
	Path       string    `yaml:"path,omitempty"`   // import path of the types
	Plural     string    `yaml:"plural,omitempty"`
	Version    string    `yaml:"version"`
	Webhooks   *Webhooks `yaml:"webhooks,omitempty"`
}

// API is the form in which a kind is served.
type API struct {
	CRDVersion string `yaml:"crdVersion,omitempty"`
	Namespaced bool   `yaml:"namespaced,omitempty"`
}

// Webhooks are those that a kind has.
type Webhooks struct {
	Conversion     bool     `yaml:"conversion,omitempty"`
	Defaulting     bool     `yaml:"defaulting,omitempty"`
	Spoke          []string `yaml:"spoke,omitempty"`
	Validation     bool     `yaml:"validation,omitempty"`
	WebhookVersion string   `yaml:"webhookVersion,omitempty"`
}

// GVK names the resource.
func (r Resource) GVK() GVK { return GVK{Group: r.Group, Version: r.Version, Kind: r.Kind} }

// APIGroup is the group of the resource in requests.
func (r Resource) APIGroup() string {
	if r.Core && r.Group == "core" {
		return ""
	}
	return Qualified(r.Group, r.Domain)
}

// PluralName is the name of the resource in requests.
func (r Resource) PluralName() string {
	if r.Plural != "" {
		return r.Plural
	}
	return PluralOf(r.Kind)
}

// Alias is the name under which Go files import the types.
func (r Resource) Alias() string {
	if r.Group == "" {
		return GoName(r.Domain) + r.Version
	}
	return GoName(r.Group) + r.Version
}

// Kustomized reports whether the project has the [KubebuilderLayout].
func (p *Project) Kustomized() bool { return slices.Contains(p.Layout, KubebuilderLayout) }

// Find returns the index of a resource, -1 if the project does not have it.
func (p *Project) Find(gvk GVK) int { return find(p.Resources, gvk) }

// FindServed returns the index of a kind of the custom API server, -1 if the server does
// not have it.
func (p *Project) FindServed(gvk GVK) int { return find(p.Served, gvk) }

// HasController reports whether a version of a kind has a controller.
func (p *Project) HasController(kind Resource) bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool {
		return r.Group == kind.Group && r.Kind == kind.Kind && r.Controller
	})
}

// HubOf is the index of the version that a version of a kind is converted to and from, -1 if
// there is none.
func (p *Project) HubOf(r Resource) int {
	return slices.IndexFunc(p.Resources, func(hub Resource) bool {
		return hub.Group == r.Group && hub.Kind == r.Kind && hub.Webhooks != nil && slices.Contains(hub.Webhooks.Spoke, r.Version)
	})
}

func find(resources []Resource, gvk GVK) int {
	return slices.IndexFunc(resources, func(r Resource) bool { return r.GVK() == gvk })
}

// Read reads the PROJECT file of a folder, which has to be one of steer init.
func Read(dir string) (*Project, error) {
	p, err := ReadAny(dir)
	if err != nil {
		return nil, err
	}
	return p, p.own(filepath.Join(dir, File))
}

// ReadAny reads the PROJECT file of a folder, also of a project of kubebuilder or
// operator-sdk.
func ReadAny(dir string) (*Project, error) {
	file := filepath.Join(dir, File)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		where := dir
		if full, err := filepath.Abs(dir); err == nil {
			where = full
		}
		return nil, Usagef("there is no file PROJECT in %s: run this in the folder of a project, or make one with steer init", where)
	}
	if err != nil {
		return nil, fmt.Errorf("read PROJECT: %w", err)
	}
	return parseProject(file, text)
}

func parseProject(file string, text []byte) (*Project, error) {
	document, err := ParseDocument(file, text)
	if err != nil {
		return nil, err
	}
	p := &Project{document: document.root}
	var about struct {
		Version string `yaml:"version"`
	}
	if err := document.Decode(&about); err != nil || len(p.document.Content) == 0 {
		return nil, Usagef("%s is no project file: it has to be a mapping with the key version", file)
	}
	if about.Version != Version {
		return nil, document.Errorf([]string{"version"}, "the file has version %q, and this steer reads version %q: use a steer that knows it, or kubebuilder to migrate it", about.Version, Version)
	}
	if err := document.Decode(p); err != nil {
		return nil, err
	}
	return p, nil
}

// own refuses projects that other tools made.
func (p *Project) own(file string) error {
	document := Document{file: file, root: p.document}
	switch {
	case !slices.Contains(p.Layout, LeanLayout) && !p.Kustomized():
		return document.Errorf([]string{"layout"}, "the layout is %s, and this command is for projects of steer init, which have %s or %s; a project of kubebuilder or operator-sdk goes on with make, and steer adopt, steer generate and steer dev -- make run work in it",
			cmp.Or(strings.Join(p.Layout, ","), "missing"), LeanLayout, KubebuilderLayout)
	case p.Repo == "":
		return document.Errorf(nil, "there is no repo: add the path of the module, as in go.mod")
	}
	return nil
}

// Text is the content of the file. What the project did not change is as it was read.
func (p *Project) Text() ([]byte, error) {
	var now yaml.Node
	if err := now.Encode(p); err != nil {
		return nil, fmt.Errorf("write PROJECT: %w", err)
	}
	if len(p.document.Content) == 0 {
		p.document = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{&now}}
	} else {
		merge(p.document.Content[0], &now, projectKeys())
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&p.document); err != nil {
		return nil, fmt.Errorf("write PROJECT: %w", err)
	}
	return out.Bytes(), nil
}

// projectKeys and resourceKeys are the keys that this package writes: where one is
// missing in a new mapping, it is removed from the old one.
func projectKeys() []string {
	return []string{"domain", "layout", "multigroup", "projectName", "repo", "resources", "served", "version"}
}

func apiKeys() []string { return []string{"crdVersion", "namespaced"} }

func resourceKeys() []string {
	return []string{"api", "controller", "core", "domain", "group", "kind", "path", "plural", "version", "webhooks"}
}

func webhookKeys() []string {
	return []string{"conversion", "defaulting", "spoke", "validation", "webhookVersion"}
}

// merge makes a mapping say what another one says of the known keys, and keeps all
// other keys, the order of keys, and comments.
func merge(old, now *yaml.Node, known []string) {
	for _, key := range known {
		at, value := entry(old, key), entry(now, key)
		switch {
		case at < 0 && value < 0:
		case value < 0:
			old.Content = slices.Delete(old.Content, at, at+2)
		case at < 0:
			next := 0 // keys are sorted, as those of kubebuilder are
			for next < len(old.Content) && old.Content[next].Value < key {
				next += 2
			}
			old.Content = slices.Insert(old.Content, next, now.Content[value], now.Content[value+1])
		case key == "resources", key == "served":
			mergeResources(old.Content[at+1], now.Content[value+1])
		case key == "webhooks":
			merge(old.Content[at+1], now.Content[value+1], webhookKeys())
		case key == "api":
			merge(old.Content[at+1], now.Content[value+1], apiKeys())
		default:
			comment := old.Content[at+1].LineComment
			if old.Content[at+1].Value != now.Content[value+1].Value || now.Content[value+1].Kind != yaml.ScalarNode {
				old.Content[at+1] = now.Content[value+1]
				old.Content[at+1].LineComment = comment
			}
		}
	}
}

// mergeResources brings a sequence of resources to what another one says.
func mergeResources(old, now *yaml.Node) {
	was := old.Content
	old.Content = nil
	for _, resource := range now.Content {
		i := slices.IndexFunc(was, func(n *yaml.Node) bool { return nameOf(n) == nameOf(resource) })
		if i >= 0 {
			merge(was[i], resource, resourceKeys())
			resource = was[i]
		}
		old.Content = append(old.Content, resource)
	}
}

// nameOf is the GVK of a resource.
func nameOf(resource *yaml.Node) (gvk GVK) {
	for key, to := range map[string]*string{"group": &gvk.Group, "version": &gvk.Version, "kind": &gvk.Kind} {
		if i := entry(resource, key); i >= 0 {
			*to = resource.Content[i+1].Value
		}
	}
	return gvk
}

// entry is the index of a key in a mapping, -1 if it is not there.
func entry(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}
