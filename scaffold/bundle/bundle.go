// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle makes a bundle for the Operator Lifecycle Manager, of the form
// registry+v1, of the objects of package deploy: the command steer package olm.
//
// What is for people, such as description, icon and maintainers, comes from
// config/manifests/bases/NAME.clusterserviceversion.yaml, where operator-sdk has it too.
// Webhooks get their certificates from OLM, and the rights for an authority of the
// operator's own are left out.
package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// Options of [Write].
type Options struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// Output is the folder of the bundle. Default: bundle.
	Output string
	// Version of the bundle, such as 0.1.0. Required.
	Version string
	// Replaces is the name of the version before, such as guestbook.v0.1.0; empty for
	// the first one.
	Replaces string
	// Channels that the bundle is in, the default one first. Default: alpha.
	Channels []string
	// Image of the operator. Default: that of steer.yaml.
	Image string
	// With are the parts of deploy.Additions that the bundle has. Default: those of steer.yaml.
	With []string
	// Force writes files anew that were edited.
	Force bool
}

type object = map[string]any

// Write writes the bundle of a project. Files that its owner has edited are left.
func Write(ctx context.Context, o Options) (*project.Report, error) {
	if err := deploy.CheckVersion(o.Version); err != nil {
		return nil, err
	}
	p, settings, err := deploy.ReadProject(o.Dir, o.Image, o.With...)
	if err != nil {
		return nil, err
	}
	files, notes, err := Files(ctx, o, p, settings)
	if err != nil {
		return nil, err
	}
	folder := deploy.Folder{Project: o.Dir, Output: cmp.Or(o.Output, "bundle"), Files: files, Force: o.Force}
	report, err := folder.Write()
	if err == nil {
		report.Notes = append(report.Notes, notes...)
	}
	if err == nil && len(p.Served) > 0 {
		report.Notes = append(report.Notes, "the custom API server is left out, since bundles have no volumes and no bindings in kube-system: steer package yaml and helm have it")
	}
	return report, err
}

// Files are those of the bundle of a project, with notes on what is left out.
func Files(ctx context.Context, o Options, p *project.Project, s deploy.Settings) (files map[string][]byte, notes []string, err error) {
	objects, err := deploy.Objects(ctx, o.Dir, p, s)
	if err != nil {
		return nil, nil, err
	}
	v, err := base(o.Dir, p)
	if err != nil {
		return nil, nil, err
	}
	v.options, v.image, v.system = o, s.Image, s.Namespace
	files = map[string][]byte{}
	for _, made := range objects {
		if made.Part == deploy.Server { // OLM makes no volumes, and no bindings in kube-system
			continue
		}
		text, err := made.YAML()
		if err != nil {
			return nil, nil, err
		}
		var content object
		if err := yaml.Unmarshal(text, &content); err != nil {
			return nil, nil, err
		}
		if !v.take(made, content) {
			continue
		}
		if made.Namespace != "" { // take has removed it
			if text, err = yaml.Marshal(content); err != nil {
				return nil, nil, err
			}
		}
		files["manifests/"+fileName(made)] = text
	}
	if v.examples(o.Dir); v.failed != nil {
		return nil, nil, v.failed
	}
	if err := v.describe(o.Dir); err != nil {
		return nil, nil, err
	}
	text, err := yaml.Marshal(v.finish())
	if err != nil {
		return nil, nil, err
	}
	files["manifests/"+p.Name+".clusterserviceversion.yaml"] = text
	annotations := annotationsOf(p.Name, o.Channels)
	if files["metadata/annotations.yaml"], err = yaml.Marshal(object{"annotations": annotations}); err != nil {
		return nil, nil, err
	}
	var image strings.Builder
	image.WriteString("FROM scratch\n\n")
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&image, "LABEL %s=%s\n", key, annotations[key])
	}
	image.WriteString("\nCOPY manifests /manifests/\nCOPY metadata /metadata/\n")
	files["bundle.Dockerfile"] = []byte(image.String())
	return files, v.notes, nil
}

// annotationsOf is what says what a bundle is.
func annotationsOf(name string, channels []string) map[string]string {
	if len(channels) == 0 {
		channels = []string{"alpha"}
	}
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       "manifests/",
		prefix + "metadata.v1":        "metadata/",
		prefix + "package.v1":         name,
		prefix + "channels.v1":        strings.Join(channels, ","),
		prefix + "channel.default.v1": channels[0],
	}
}

func fileName(o deploy.Object) string {
	if o.Part == deploy.CRD {
		plural, group, _ := strings.Cut(o.Name, ".")
		return group + "_" + plural + ".yaml"
	}
	return o.Name + "_" + strings.ToLower(o.Kind) + ".yaml"
}

// base is the version that the project describes, or one that is made of its name.
func base(dir string, p *project.Project) (*version, error) {
	file := filepath.Join(dir, "config", "manifests", "bases", p.Name+".clusterserviceversion.yaml")
	v := &version{project: p}
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.content = object{"spec": object{
			"displayName": p.Name, "description": "The operator " + p.Name + ".", "maturity": "alpha",
			"keywords": []any{p.Name}, "provider": object{"name": p.Domain}, "minKubeVersion": "1.33.0",
			"maintainers":  []any{object{"name": p.Name, "email": "maintainers@" + p.Domain}},
			"links":        []any{object{"name": p.Name, "url": "https://" + p.Repo}},
			"icon":         []any{object{"base64data": icon, "mediatype": "image/svg+xml"}},
			"installModes": modes(),
		}}
	case err != nil:
		return nil, err
	default:
		if err := project.CheckDocuments(file, text); err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(text, &v.content); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if v.spec, _ = v.content["spec"].(object); v.spec == nil {
		return nil, fmt.Errorf("%s has no spec; remove it to begin with one that is made of PROJECT", file)
	}
	if v.spec["installModes"] == nil {
		v.spec["installModes"] = modes()
	}
	return v, nil
}

// icon is an empty SVG image: catalogues want one.
const icon = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="

// modes are those of an operator that watches all namespaces, the only one that OLM
// allows with conversion webhooks, and that its version 1 has.
func modes() []any {
	var out []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		out = append(out, object{"type": mode, "supported": mode == "AllNamespaces"})
	}
	return out
}

// examples takes config/samples over, for the forms of consoles.
func (v *version) examples(dir string) {
	found, err := filepath.Glob(filepath.Join(dir, "config", "samples", "*.yaml"))
	v.failed = cmp.Or(v.failed, err)
	all := []any{}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			v.failed = cmp.Or(v.failed, err)
			continue
		}
		if err := project.CheckDocuments(file, text); err != nil {
			v.failed = cmp.Or(v.failed, err)
			continue
		}
		for document := range strings.SplitSeq(string(text), "\n---") {
			var o object
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				v.failed = cmp.Or(v.failed, fmt.Errorf("%s: %w", file, err))
			} else if kind, _ := o["kind"].(string); v.owns(kind) {
				all = append(all, o)
			}
		}
	}
	text, err := json.Marshal(all)
	v.failed = cmp.Or(v.failed, err)
	v.annotations = object{"alm-examples": string(text), "capabilities": "Basic Install"}
}
