// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

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
		fmt.Fprintf(&out, "# %s\n", comment)
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := errors.Join(encoder.Encode(object{name: value}), encoder.Close()); err != nil {
			return fmt.Errorf("write values.yaml: %w", err)
		}
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
		{"Roles for those who administrate, edit and view objects of the kinds; nothing binds them.", "rbacHelpers", object{"enable": true}},
		{"What the project has in config/extras.", "extras", object{"enable": true}},
		{"Admission webhooks.", "webhook", object{"enable": true}},
		{"The records of reconciles in files of each Pod, for steer why --records NAMESPACE/deploy/NAME.", deploy.WithRecords, object{"enable": true}},
		{"A board of the metrics, for the sidecar of Grafana.", deploy.WithGrafana, object{"enable": true}},
		{"A PrometheusRule of alerts on the metrics; prometheus.enable has them scraped.", deploy.WithAlerts, object{"enable": true}},
		{"The custom API server.", "server", object{"enable": true, "image": imageOf(s.Server.Image), "resources": s.Server.Resources}},
	}
	optional := map[string]string{"webhook": webhookCondition, "server": serverCondition, "extras": extrasCondition}
	for _, addition := range deploy.Additions() {
		optional[addition] = additionCondition(deploy.Part(addition))
	}
	for _, b := range blocks {
		if condition, ok := optional[b.name]; ok && !conditions[condition] {
			continue
		}
		if err := block(b.comment, b.name, b.value); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// merges bring files that were edited to what is asked for.
func (o *Options) merges(output string) map[string]func(edited, generated []byte) ([]byte, error) {
	values, about := filepath.Join(output, "values.yaml"), filepath.Join(output, "Chart.yaml")
	out := map[string]func(edited, generated []byte) ([]byte, error){
		"values.yaml": func(edited, generated []byte) ([]byte, error) {
			text, err := addValues(values, edited, generated)
			if err != nil || o.Image == "" {
				return text, err
			}
			repository, tag, digest := splitImage(o.Image)
			return setTexts(values, text, []setting{
				{[]string{"manager", "image", "repository"}, repository},
				{[]string{"manager", "image", "tag"}, tag},
				{[]string{"manager", "image", "digest"}, digest},
			})
		},
	}
	var settings []setting
	if o.Version != "" {
		settings = append(settings, setting{[]string{"version"}, o.Version})
	}
	if o.Image != "" {
		_, tag, _ := splitImage(o.Image)
		settings = append(settings, setting{[]string{"appVersion"}, tag})
	}
	if len(settings) > 0 {
		out["Chart.yaml"] = func(edited, _ []byte) ([]byte, error) { return setTexts(about, edited, settings) }
	}
	return out
}

// addValues adds the top-level values to an edited values.yaml that it does not have.
func addValues(file string, edited, generated []byte) ([]byte, error) {
	var have map[string]any
	document, err := project.ParseDocument(file, edited)
	if err != nil {
		return nil, err
	}
	if err := document.Decode(&have); err != nil {
		return nil, err
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

// setting is a text at a path of keys; where it is empty, there may be none.
type setting struct {
	path []string
	text string
}

// setTexts gives a file other texts, and changes nothing else in it.
func setTexts(file string, text []byte, settings []setting) ([]byte, error) {
	for _, s := range settings {
		document, err := project.ParseDocument(file, text)
		if err != nil {
			return nil, err
		}
		node := document.Find(s.path...)
		if node == nil && s.text == "" || node != nil && node.Value == s.text {
			continue
		}
		if text = replace(text, node, strconv.Quote(s.text)); text == nil {
			return nil, document.Errorf(s.path, "cannot make %s %q here: write a plain text there first", strings.Join(s.path, "."), s.text)
		}
	}
	return text, nil
}

// plainText is a text as it is written, up to what ends it.
var plainText = regexp.MustCompile(`^(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'&*!|>{}\[\],#][^\s{}\[\],]*)`)

// replace writes a text in the place of that of a node; nil: it has none that is plain.
func replace(text []byte, node *yaml.Node, by string) []byte {
	if node == nil || node.Kind != yaml.ScalarNode {
		return nil
	}
	lines := strings.SplitAfter(string(text), "\n")
	line := []rune(lines[node.Line-1])
	before, rest := string(line[:node.Column-1]), string(line[node.Column-1:])
	was := plainText.FindString(rest)
	if was == "" || node.Style == 0 && was != node.Value { // it goes on behind a space
		return nil
	}
	lines[node.Line-1] = before + by + rest[len(was):]
	return []byte(strings.Join(lines, ""))
}
