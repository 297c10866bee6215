// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart makes a Helm chart of the objects of package deploy, with the values that
// kubebuilder's charts have: the command steer package helm.
//
// The objects are made once, with placeholders for what a value decides, and each
// document becomes a template. With the values that are written, the chart renders to what
// steer package yaml writes, without the Namespace, which is that of the release, and
// with an annotation that lets the CRDs outlive it.
package chart

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// Options of [Write].
type Options struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// Output is the folder of the chart. Default: dist/chart.
	Output string
	// Image of the operator that values.yaml names, also where that was edited. Default: that
	// of steer.yaml; then an edited file keeps its own.
	Image string
	// With are the parts of deploy.Additions that the chart has, each with a value that turns
	// it off. Default: those of steer.yaml.
	With []string
	// Version of the chart, such as 0.1.0, also where Chart.yaml was edited. Default: 0.1.0;
	// then an edited file keeps its own.
	Version string
	// Force writes files anew that were edited.
	Force bool
}

// What stands for values while the objects are made.
const (
	imageMark     = "steer.invalid/image:mark"
	serverMark    = "steer.invalid/server:mark"
	namespaceMark = "steer-namespace-mark"
	replicasMark  = 1987654321
	resourceMark  = "steer.invalid/mark"
)

// Write writes the chart of a project. Files that its owner has edited are left, and
// values.yaml gets the values that it does not have.
func Write(ctx context.Context, o Options) (*project.Report, error) {
	if o.Version != "" {
		if err := deploy.CheckVersion(o.Version); err != nil {
			return nil, err
		}
	}
	p, settings, err := deploy.ReadProject(o.Dir, o.Image, o.With...)
	if err != nil {
		return nil, err
	}
	files, err := Files(ctx, o, p, settings)
	if err != nil {
		return nil, err
	}
	output := cmp.Or(o.Output, "dist/chart")
	folder := deploy.Folder{Project: o.Dir, Output: output, Files: files, Force: o.Force, Merge: o.merges(output)}
	return folder.Write()
}

// Files are those of the chart of a project.
func Files(ctx context.Context, o Options, p *project.Project, s deploy.Settings) (map[string][]byte, error) {
	marked := s
	marked.Image, marked.Namespace, marked.Replicas, marked.ServiceMonitor = imageMark, namespaceMark, replicasMark, true
	marked.Resources = deploy.Resources{Limits: map[string]string{resourceMark: "1"}}
	marked.Server.Image, marked.Server.Resources = serverMark, marked.Resources
	objects, err := deploy.Objects(ctx, o.Dir, p, marked)
	if err != nil {
		return nil, err
	}
	templates := map[string]*bytes.Buffer{}
	converts := slices.ContainsFunc(objects, deploy.Object.Converted)
	conditions := map[string]bool{}
	for _, o := range objects {
		if o.Part == deploy.Namespace {
			continue
		}
		condition := conditionOf(o, converts)
		conditions[condition] = true
		if o.Part == deploy.Grafana || o.Part == deploy.Alerts { // what has a value of its own among others
			conditions[additionCondition(o.Part)] = true
		}
		text, err := o.YAML()
		if err != nil {
			return nil, err
		}
		name := path.Join("templates", string(o.Part), fileName(o, p.Name))
		if templates[name] == nil {
			templates[name] = &bytes.Buffer{}
		}
		templates[name].WriteString(template(o, string(text), condition, converts))
	}
	values, err := valuesOf(s, conditions)
	if err != nil {
		return nil, err
	}
	_, tag, _ := splitImage(s.Image)
	files := map[string][]byte{
		"Chart.yaml": fmt.Appendf(nil, "apiVersion: v2\nname: %s\ndescription: The operator %s\ntype: application\nversion: %s\nappVersion: %q\n", p.Name, p.Name, cmp.Or(o.Version, "0.1.0"), tag),
		// Helm packs what is not named here.
		".helmignore": []byte(deploy.RecordFile + "\n.git/\n.DS_Store\n*.orig\n*.tgz\n"),
		"values.yaml": values,
	}
	for name, text := range templates {
		files[name] = text.Bytes()
	}
	return files, nil
}

// fileName is the file of an object: that of its name, without the project's.
func fileName(o deploy.Object, project string) string {
	name := strings.TrimPrefix(o.Name, project+"-")
	if o.Part != deploy.CRD {
		name += "-" + strings.ToLower(o.Kind)
	}
	return name + ".yaml"
}

var resources = regexp.MustCompile(`(?m)^( *)resources:\n *limits:\n *` + regexp.QuoteMeta(resourceMark) + `: "1"\n`)

// conditionOf is when an object is part of a release; empty: always. Where versions are
// converted, the API server calls the operator without admission webhooks, too.
func conditionOf(o deploy.Object, converts bool) string {
	switch o.Part {
	case deploy.CRD:
		return ".Values.crd.enable"
	case deploy.UserRoles:
		return ".Values.rbacHelpers.enable"
	case deploy.Extras:
		return extrasCondition
	case deploy.Metrics:
		return ".Values.metrics.enable"
	case deploy.Records:
		return additionCondition(o.Part)
	case deploy.Grafana, deploy.Alerts:
		return "and .Values.metrics.enable " + additionCondition(o.Part)
	case deploy.Prometheus:
		return "and .Values.metrics.enable .Values.prometheus.enable"
	case deploy.NetworkPolicy:
		return ".Values.networkPolicy.enable"
	case deploy.Webhook:
		if !converts || strings.HasSuffix(o.Kind, "WebhookConfiguration") {
			return webhookCondition
		}
	case deploy.Server:
		return serverCondition
	}
	return ""
}

const (
	webhookCondition = ".Values.webhook.enable"
	serverCondition  = ".Values.server.enable"
	extrasCondition  = ".Values.extras.enable"
)

// additionCondition is the value that turns a part of deploy.Additions off.
func additionCondition(part deploy.Part) string { return ".Values." + string(part) + ".enable" }

// keeping are the lines of a Deployment by which the operator keeps its records.
var keeping = regexp.MustCompile(`(?m)^ *- --record-dir=.*\n *- --pprof-bind-address=.*\n|^ *volumeMounts:\n.*\n.*\n|^ *volumes:\n.*\n.*\n.*\n`)

// template makes a template of a document.
func template(o deploy.Object, text, condition string, converts bool) string {
	// What looks like a template in a description is none.
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	text = strings.NewReplacer(
		imageMark, imageOf("manager"),
		serverMark, imageOf("server"),
		namespaceMark, `{{ .Release.Namespace | quote }}`,
		fmt.Sprint(replicasMark), `{{ .Values.manager.replicas }}`,
		"--metrics-bind-address=:8443", `--metrics-bind-address={{ if .Values.metrics.enable }}:8443{{ else }}0{{ end }}`,
	).Replace(text)
	of := "manager"
	if o.Part == deploy.Server {
		of = "server"
	}
	text = resources.ReplaceAllString(text, "$1{{- with .Values."+of+".resources }}\n${1}resources:\n$1  {{- toYaml . | nindent 10 }}\n$1{{- end }}\n")
	if o.Kind == "Deployment" && strings.Contains(text, "name: webhook") && !converts {
		text = strings.Replace(text, "        env:\n", "        env:\n        {{- if not .Values.webhook.enable }}\n        - name: ENABLE_WEBHOOKS\n          value: \"false\"\n        {{- end }}\n", 1)
	}
	if o.Kind == "Deployment" && o.Part == deploy.Manager {
		text = keeping.ReplaceAllStringFunc(text, func(lines string) string {
			indent := lines[:len(lines)-len(strings.TrimLeft(lines, " "))]
			return indent + "{{- if " + additionCondition(deploy.Records) + " }}\n" + lines + indent + "{{- end }}\n"
		})
	}
	if o.Part == deploy.CRD {
		text = keepable(text)
	}
	if condition != "" {
		text = "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
	}
	return "---\n" + text
}

// imageOf is the image of a part in a template.
func imageOf(part string) string {
	values := ".Values." + part + ".image"
	return `"{{ ` + values + `.repository }}{{ with ` + values + `.digest }}@{{ . }}{{ else }}:{{ ` + values + `.tag }}{{ end }}"`
}

// keepable lets a value decide whether a CRD, and with it its objects, outlives the
// release.
func keepable(text string) string {
	const keep = "    {{- if .Values.crd.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n"
	if strings.Contains(text, "\nmetadata:\n  annotations:\n") {
		return strings.Replace(text, "\nmetadata:\n  annotations:\n", "\nmetadata:\n  annotations:\n"+keep, 1)
	}
	return strings.Replace(text, "\nmetadata:\n", "\nmetadata:\n  {{- if .Values.crd.keep }}\n  annotations:\n    helm.sh/resource-policy: keep\n  {{- end }}\n", 1)
}
