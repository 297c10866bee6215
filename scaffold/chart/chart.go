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

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// Options of [Write].
type Options struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// Output is the folder of the chart. Default: dist/chart.
	Output string
	// Image of the operator that values.yaml names. Default: that of steer.yaml.
	Image string
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
	p, settings, err := deploy.ReadProject(o.Dir, o.Image)
	if err != nil {
		return nil, err
	}
	files, err := Files(ctx, o.Dir, p, settings)
	if err != nil {
		return nil, err
	}
	folder := deploy.Folder{
		Project: o.Dir, Output: cmp.Or(o.Output, "dist/chart"), Files: files, Force: o.Force,
		Merge: map[string]func(edited, generated []byte) ([]byte, error){"values.yaml": addValues},
	}
	return folder.Write()
}

// Files are those of the chart of a project.
func Files(ctx context.Context, dir string, p *project.Project, s deploy.Settings) (map[string][]byte, error) {
	marked := s
	marked.Image, marked.Namespace, marked.Replicas, marked.ServiceMonitor = imageMark, namespaceMark, replicasMark, true
	marked.Resources = deploy.Resources{Limits: map[string]string{resourceMark: "1"}}
	marked.Server.Image, marked.Server.Resources = serverMark, marked.Resources
	objects, err := deploy.Objects(ctx, dir, p, marked)
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
		"Chart.yaml": fmt.Appendf(nil, "apiVersion: v2\nname: %s\ndescription: The operator %s\ntype: application\nversion: 0.1.0\nappVersion: %q\n", p.Name, p.Name, tag),
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
	case deploy.Metrics:
		return ".Values.metrics.enable"
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
)

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

// splitImage divides the name of an image.
func splitImage(image string) (repository, tag, digest string) {
	repository, digest, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository, tag = repository[:i], repository[i+1:]
	}
	if tag == "" {
		tag = "latest"
	}
	return repository, tag, digest
}

// valuesOf is values.yaml.
func valuesOf(s deploy.Settings, conditions map[string]bool) ([]byte, error) {
	type object = map[string]any
	imageOf := func(name string) object {
		repository, tag, digest := splitImage(name)
		image := object{"repository": repository, "tag": tag}
		if digest != "" {
			image["digest"] = digest
		}
		return image
	}
	var out bytes.Buffer
	block := func(comment, name string, value any) error {
		text, err := yaml.Marshal(object{name: value})
		if err != nil {
			return fmt.Errorf("write values.yaml: %w", err)
		}
		fmt.Fprintf(&out, "# %s\n%s", comment, text)
		return nil
	}
	blocks := []struct {
		comment, name string
		value         any
	}{
		{"The Deployment of the operator. A digest of the image takes the place of its tag.", "manager", object{"replicas": s.Replicas, "image": imageOf(s.Image), "resources": s.Resources}},
		{"CRDs are installed and upgraded with the release; with keep they, and all their objects, outlive it.", "crd", object{"enable": true, "keep": true}},
		{"Metrics are served by HTTPS to those who have the role metrics-reader.", "metrics", object{"enable": true}},
		{"A ServiceMonitor, for clusters with the operator of Prometheus.", "prometheus", object{"enable": s.ServiceMonitor}},
		{"Metrics only to namespaces with the label metrics: enabled.", "networkPolicy", object{"enable": true}},
		{"Admission webhooks.", "webhook", object{"enable": true}},
		{"The custom API server.", "server", object{"enable": true, "image": imageOf(s.Server.Image), "resources": s.Server.Resources}},
	}
	for _, b := range blocks {
		if b.name == "webhook" && !conditions[webhookCondition] || b.name == "server" && !conditions[serverCondition] {
			continue
		}
		if err := block(b.comment, b.name, b.value); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// addValues adds the top-level values to an edited values.yaml that it does not have.
func addValues(edited, generated []byte) ([]byte, error) {
	var have map[string]any
	if err := yaml.Unmarshal(edited, &have); err != nil {
		return nil, fmt.Errorf("values.yaml: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	out := edited
	for block := range strings.SplitSeq("\n"+string(generated), "\n# ") {
		block = strings.TrimSuffix(block, "\n") + "\n"
		_, text, _ := strings.Cut(block, "\n")
		if name, _, ok := strings.Cut(text, ":"); ok && have[name] == nil {
			if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
				out = append(out, '\n')
			}
			out = append(out, "# "+block...)
		}
	}
	return out, nil
}
