// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/scaffold/project"
)

//go:embed templates
var templates embed.FS

// values are what stands in {{name}} in a template.
type values map[string]string

// fill fills a template in.
func fill(name string, v values) ([]byte, error) {
	text, err := templates.ReadFile("templates/" + name + ".tmpl")
	if err != nil {
		return nil, err
	}
	var pairs []string
	for key, value := range v {
		pairs = append(pairs, "{{"+key+"}}", value)
	}
	out := strings.NewReplacer(pairs...).Replace(string(text))
	if i := strings.Index(out, "{{"); i >= 0 {
		return nil, fmt.Errorf("template %s: no value for %.20q", name, out[i:])
	}
	return []byte(out), nil
}

// Files that every project has; paths are relative to it and have slashes.
const (
	mainFile     = "cmd/main.go"
	sampleDir    = "config/samples"
	modFile      = "go.mod"
	sumFile      = "go.sum"
	steerPath    = "github.com/steer-dev/steer"
	steerTool    = steerPath + "/cmd/steer"
	goVersion    = "1.26.0" // that of Steer itself
	noVersion    = "v0.0.0" // of a Steer that is replaced
	gitIgnore    = ".gitignore"
	makeFile     = "Makefile"
	settingsFile = "steer.yaml"
	headerFile   = "hack/boilerplate.go.txt"
)

// places are where the files of a resource are.
type places struct {
	p *project.Project
	r project.Resource

	controllerDir, webhookDir, sample string
}

// The folders of a project with one group.
const (
	controllerDir = "internal/controller"
	webhookDir    = "internal/webhook"
)

// placesOf are the places of a resource: in a project with several groups, folders by group,
// except for files that are where a project with one group has them.
func (c *command) placesOf(p *project.Project, r project.Resource) places {
	pl := places{p: p, r: r}
	var versions []string
	for _, other := range append(p.Resources, r) {
		if other.Group == r.Group && other.Kind == r.Kind && other.Path != "" {
			versions = append(versions, strconv.Quote(other.Path))
		}
	}
	code := pl.lower() + "_controller.go"
	pl.controllerDir = path.Dir(c.place(path.Join(controllerDir, code), path.Join(pl.byGroup(controllerDir), code), versions...))
	code = path.Join(r.Version, pl.lower()+"_webhook.go")
	pl.webhookDir = path.Dir(c.place(path.Join(webhookDir, code), path.Join(pl.byGroup(webhookDir), code), strconv.Quote(r.Path)))
	sample, prefix := r.Version+"_"+pl.lower()+".yaml", ""
	if group := pl.byGroup(""); group != "" {
		prefix = group + "_"
	}
	pl.sample = c.place(path.Join(sampleDir, sample), path.Join(sampleDir, prefix+sample), r.APIGroup()+"/"+r.Version)
	return pl
}

// place is one of two files: the first one, if it is there and has one of some texts, and
// the second one otherwise.
func (c *command) place(plain, byGroup string, texts ...string) string {
	text, err := c.read(plain)
	if err == nil && slices.ContainsFunc(texts, func(s string) bool { return bytes.Contains(text, []byte(s)) }) {
		return plain
	}
	return byGroup
}

// byGroup is a folder of the group's own, in a project with several groups.
func (pl places) byGroup(dir string) string {
	if pl.p.MultiGroup && pl.r.Group != "" {
		return path.Join(dir, pl.r.Group)
	}
	return dir
}

func (pl places) lower() string { return strings.ToLower(pl.r.Kind) }

// apiDir is the folder of the types: the one of PROJECT, if it says one.
func (pl places) apiDir() string {
	if dir, ok := strings.CutPrefix(pl.r.Path, pl.p.Repo+"/"); ok {
		return dir
	}
	return path.Join(pl.byGroup("api"), pl.r.Version)
}

func (pl places) types() string        { return path.Join(pl.apiDir(), pl.lower()+"_types.go") }
func (pl places) groupVersion() string { return path.Join(pl.apiDir(), "groupversion_info.go") }

func (pl places) controller() string {
	return path.Join(pl.controllerDir, pl.lower()+"_controller.go")
}

func (pl places) controllerTest() string {
	return path.Join(pl.controllerDir, pl.lower()+"_controller_test.go")
}

// controllerPackage is the name of the package of controllers, and the one that
// cmd/main.go imports it under.
func (pl places) controllerPackage() (name, imported string) {
	if pl.controllerDir != controllerDir {
		name = project.GoName(pl.r.Group)
		return name, name + "controller"
	}
	return "controller", "controller"
}

func (pl places) reconciler() string { return pl.r.Kind + "Reconciler" }

// values are those of all templates of a resource.
func (pl places) values() values {
	name, _ := pl.controllerPackage()
	group := pl.r.APIGroup()
	rbac := group
	if rbac == "" {
		rbac = `""`
	}
	return values{
		"name": pl.p.Name, "kind": pl.r.Kind, "lower": pl.lower(), "plural": pl.r.PluralName(), "version": pl.r.Version,
		"apigroup": group, "rbacgroup": rbac, "alias": pl.r.Alias(), "path": pl.r.Path, "package": name,
		"reconciler": pl.reconciler(), "sample": pl.sample, "resourcemarker": pl.resourceMarker(), "definitions": "",
		"webhookname": pl.webhookName(), "crds": pl.crds(), "result": pl.result(),
	}
}

// crds is the option of a test that has the definition of a kind of another module.
func (pl places) crds() string {
	if !pl.r.External {
		return ""
	}
	return "\t\tCRDs: []string{" + strconv.Quote(project.ExternalCRDDir) + "},\n"
}

// result is how the controller of a kind that the project does not have ends: on one of another
// module, the generation that was observed is for another controller to write.
func (pl places) result() string {
	if pl.r.External {
		return "\treturn controller.Wait(), nil // Done would say in the status what its own controller has observed\n"
	}
	return "\treturn controller.Done(), nil\n"
}

// externalDefinition is the stand-in for the definition of a kind of another module.
func (pl places) externalDefinition() string {
	return path.Join(project.ExternalCRDDir, pl.r.APIGroup()+"_"+pl.r.PluralName()+".yaml")
}

// resourceMarker is the line of the marker for a kind that is not served by the
// defaults.
func (pl places) resourceMarker() string {
	var options []string
	if pl.r.Plural != "" && pl.r.Plural != project.PluralOf(pl.r.Kind) {
		options = append(options, "path="+pl.r.Plural)
	}
	if pl.r.API != nil && !pl.r.API.Namespaced {
		options = append(options, "scope=Cluster")
	}
	if len(options) == 0 {
		return ""
	}
	return "// +kubebuilder:resource:" + strings.Join(options, ",") + "\n"
}
