// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"strings"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/kustomize"
	"github.com/steer-dev/steer/scaffold/project"
)

// Layouts are the names that InitOptions.Layout may have: lean, which leaves to steer
// package what a cluster needs, and kubebuilder, which has it as kustomizations in the
// folder config, and a Dockerfile.
func Layouts() []string { return []string{"lean", "kubebuilder"} }

// layoutOf is the layout of a name, as PROJECT says it.
func layoutOf(name string) (string, error) {
	switch name {
	case "", "lean":
		return project.LeanLayout, nil
	case "kubebuilder":
		return project.KubebuilderLayout, nil
	}
	return "", project.Usagef("--layout %q is not known: give one of %s", name, strings.Join(Layouts(), ", "))
}

// recipes are the parts of the Makefile in which projects differ: by layout, and in whether
// they have a Dockerfile.
func recipes(p *project.Project, dockerfile bool) values {
	v := values{
		"name": p.Name, "targets": "", "kustomize": "", "crds": "-f " + project.CRDDir, "docker": "", "deployment": "build-installer",
		"deploy": "\tkubectl apply --server-side -f dist/install.yaml", "all": "-f dist/install.yaml",
	}
	if p.Kustomized() {
		v["kustomize"], v["crds"], v["deployment"], v["all"] = "\n\tgo tool steer package kustomize", "-k config/crd", "manifests", "-k config/default"
		v["deploy"] = "\tgo tool steer package kustomize $(if $(IMG),--image $(IMG))\n\tkubectl apply --server-side -k config/default"
	}
	if dockerfile {
		v["targets"] = " docker-build docker-push"
		v["docker"] = `docker-build: ## build the image IMG=NAME
	docker build -t $(or $(IMG),` + p.Name + `:latest) .

docker-push: ## push the image IMG=NAME
	docker push $(or $(IMG),` + p.Name + `:latest)

`
	}
	return v
}

// kustomize brings the kustomizations of a project that has them up to date. Files that
// its owner has edited are left, and noted when what is written to them has changed.
func (c *command) kustomize(ctx context.Context, p *project.Project) error {
	if !p.Kustomized() {
		return nil
	}
	folder := &deploy.Folder{Project: c.dir, Output: kustomize.Output}
	if len(p.Resources) > 0 {
		settings, err := deploy.ReadSettings(c.dir, p)
		if err != nil {
			return err
		}
		folder, err = kustomize.Folder(ctx, c.dir, p, settings)
		if errors.Is(err, project.ErrUsage) { // what the command was asked for is done
			c.note("config has no kustomizations of this: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	var found project.Report
	changes, err := folder.Changes(&found)
	if err != nil {
		return err
	}
	c.report.Notes = append(c.report.Notes, found.Notes...)
	return c.apply(changes)
}
