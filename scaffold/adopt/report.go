// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/generate/plural"
	"github.com/steer-dev/steer/scaffold/project"
)

// Report is what a move of a project to Steer means.
type Report struct {
	project  *project.Project
	makefile *makefile
	sources  *sources
	// generated says how the generated files would change.
	generated []string
	missing   []string // markers of RBAC
	deletions []deletion
}

// deletion is a step of a move, and the files that nothing needs afterwards.
type deletion struct {
	step         string
	files, lines int
	examples     []string
}

// Examine reads a project, and changes nothing.
func Examine(ctx context.Context, o Options) (*Report, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	text, err := readMakefile(filepath.Join(dir, makefileName))
	if err != nil {
		return nil, err
	}
	if r.project, err = readProject(dir); err != nil {
		return nil, err
	}
	if r.makefile, err = o.makefile(dir, text); err != nil {
		return nil, err
	}
	if r.sources, err = readSources(dir); err != nil {
		return nil, err
	}
	r.generated = generatedAnew(ctx, dir, text)
	r.missing = r.missingRules()
	r.deletions, err = r.sources.deletions(dir)
	return r, err
}

// controllerGenCall is a command that runs controller-gen, with quotes or without.
var controllerGenCall = regexp.MustCompile(`^@?["']?\$[({]CONTROLLER_GEN[)}]["']? (.*)$`)

// unquote takes the quotes of words away.
func unquote(words string) string { return strings.NewReplacer(`"`, "", `'`, "").Replace(words) }

// generatedAnew runs the generators that the Makefile runs, in memory.
func generatedAnew(ctx context.Context, dir, makefile string) []string {
	var out []string
	for _, command := range commands(makefile) {
		call := controllerGenCall.FindStringSubmatch(strings.TrimSpace(command))
		if call == nil {
			continue
		}
		written := strings.Join(strings.Fields(unquote(call[1])), " ")
		arguments, unknown, err := argumentsOf(makefile, dir, written)
		var changes []string
		if err == nil {
			changes, err = changesOf(ctx, dir, arguments)
		}
		switch {
		case err != nil:
			out = append(out, fmt.Sprintf("controller-gen %s: %s", written, strings.SplitN(err.Error(), "\n", 2)[0]))
		case len(changes) == 0:
			out = append(out, fmt.Sprintf("controller-gen %s: no file changes", written))
		}
		out = append(out, changes...)
		if unknown != "" {
			out = append(out, allPaths+" stands for "+unknown+", which only make knows")
		}
	}
	return out
}

const allPaths = "paths=./..."

// argumentsOf are the arguments of a run of controller-gen. All packages stand for paths
// that only make knows, which are returned, too.
func argumentsOf(makefile, dir, written string) (out []string, unknown string, err error) {
	for argument := range strings.FieldsSeq(written) {
		value, ok := evaluate(makefile, dir, argument)
		value = unquote(value)
		paths := strings.HasPrefix(argument, "paths=")
		switch {
		case ok && paths:
			out = append(out, value)
		case ok:
			out = append(out, strings.Fields(value)...)
		case paths:
			out, unknown = append(out, allPaths), argument
		default:
			return nil, "", fmt.Errorf("only make knows %s", argument)
		}
	}
	return out, unknown, nil
}

// changesOf describes how the files of one run of the generators would change.
func changesOf(ctx context.Context, dir string, arguments []string) ([]string, error) {
	request, err := generate.Parse(arguments, generate.Compatible)
	if err != nil {
		return nil, err
	}
	request.Dir = dir
	result, err := generate.Run(ctx, request)
	if err != nil {
		return nil, err
	}
	changes, err := result.Changes()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, change := range changes {
		name, err := filepath.Rel(dir, change.Path)
		if err != nil {
			return nil, err
		}
		out = append(out, filepath.ToSlash(name)+": "+describe(change))
	}
	return out, nil
}

// describe says how a generated file would change.
func describe(change generate.Change) string {
	const annotation = "controller-gen.kubebuilder.io/version:"
	if change.Before == nil {
		return "new"
	}
	before, after := lineCounts(change.Before), lineCounts(change.After)
	var gone, come int
	only := true
	for line, n := range before {
		if d := n - after[line]; d > 0 {
			gone += d
			only = only && strings.Contains(line, annotation)
		}
	}
	for line, n := range after {
		if d := n - before[line]; d > 0 {
			come += d
			only = only && strings.Contains(line, annotation)
		}
	}
	if only {
		return "the annotation with the version of controller-gen"
	}
	return fmt.Sprintf("%d lines go, %d come, as with controller-gen %s", gone, come, generate.CompatibleVersion)
}

func lineCounts(text []byte) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		out[strings.TrimRight(line, "\r\n")]++
	}
	return out
}

// missingRules are the markers that Steer's runtime needs and the project does not have.
func (r *Report) missingRules() []string {
	var out []string
	need := func(group, resource string, verbs ...string) {
		verbs = slices.DeleteFunc(verbs, func(verb string) bool { return r.sources.allows(group, resource, verb) })
		if len(verbs) > 0 {
			r.sources.rules = append(r.sources.rules, rule{[]string{group}, []string{resource}, verbs}) // named once
			out = append(out, fmt.Sprintf("// +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s", cmp.Or(group, `""`), resource, strings.Join(verbs, ";")))
		}
	}
	for _, resource := range r.project.Resources {
		if !resource.Controller || resource.API == nil {
			continue
		}
		group := strings.Trim(resource.Group+"."+cmp.Or(resource.Domain, r.project.Domain), ".")
		name := cmp.Or(resource.Plural, strings.ToLower(plural.Of(resource.Kind)))
		need(group, name, "get", "list", "watch")
		need(group, name+"/status", "patch") // the status is written as a patch
		if len(r.sources.finalizers)+len(r.sources.owned) > 0 {
			need(group, name, "patch") // as are finalizers, and the inventory of children
		}
	}
	kinds := &project.Project{Domain: r.project.Domain, Resources: r.project.Resources}
	for _, owned := range r.sources.owned {
		if group, name, ok := kinds.ResourceOf(owned.path, owned.Name); ok {
			need(group, name, childVerbs()...)
		} else {
			out = append(out, fmt.Sprintf("%s of children of the kind %s, at %s, whose group is not known here", strings.Join(childVerbs(), ";"), owned.Name, owned.Place))
		}
	}
	if len(r.sources.recorders) > 0 {
		need("events.k8s.io", "events", "create", "patch")
	}
	if len(r.sources.leases) > 0 {
		out = append(out, "the role config/rbac/leader_election_role.yaml, or the generator rbac:leaderElection=true, which makes it")
	}
	return out
}

// childVerbs are the verbs that controller.Children uses.
func childVerbs() []string { return []string{"get", "list", "watch", "create", "patch", "delete"} }

// deletions are the files that the steps of a move make superfluous.
func (s *sources) deletions(dir string) ([]deletion, error) {
	tests := deletion{step: "tests on steertest in place of envtest (docs/guide/2-level-triggered.md)"}
	start := deletion{step: "main of steer.Main, about 25 lines, in place of"}
	for _, file := range s.files {
		switch {
		case file.envtest:
			tests.add(file.name, file.lines)
		case file.name == "main.go" || file.name == "cmd/main.go":
			start.add(file.name, file.lines)
		}
	}
	config := deletion{step: "steer package in place of kustomize"}
	err := filepath.WalkDir(filepath.Join(dir, "config"), func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); superfluous(name) {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			config.add(name, strings.Count(string(text), "\n"))
		}
		return nil
	})
	return []deletion{tests, start, config}, err
}

func (d *deletion) add(name string, lines int) {
	d.files++
	d.lines += lines
	d.examples = append(d.examples, name)
}

// superfluous reports whether steer package makes a file of config.
func superfluous(name string) bool {
	switch folder := strings.Split(name, "/")[1]; folder {
	case "default", "manager", "prometheus", "network-policy", "certmanager", "manifests", "scorecard":
		return true
	case "rbac":
		return name != "config/rbac/role.yaml"
	case "crd":
		return !strings.HasPrefix(name, project.CRDDir+"/")
	case "webhook":
		return name != "config/webhook/manifests.yaml"
	}
	return false
}

// standardFlags are those of steer.Main.
func standardFlags() []string {
	return []string{
		"kubeconfig", "metrics-bind-address", "metrics-secure", "metrics-cert-path", "metrics-cert-name", "metrics-cert-key",
		"webhook-port", "webhook-cert-path", "webhook-cert-name", "webhook-cert-key", "webhook-drain", "enable-http2", "tls-min-version", "tls-cipher-suites",
		"health-probe-bind-address", "pprof-bind-address", "record-dir", "leader-elect", "leader-election-namespace", "leader-election-id",
		"zap-devel", "zap-encoder", "zap-log-level", "zap-stacktrace-level", "zap-time-encoding",
	}
}
