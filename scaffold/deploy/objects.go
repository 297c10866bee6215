// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/project"
)

// Ports of the operator's container.
const (
	healthPort  = 8081
	metricsPort = 8443
	webhookPort = 9443
)

// object is a manifest.
type object = map[string]any

// Object is one object of a deployment.
type Object struct {
	Kind, Namespace, Name string
	Part                  Part
	content               object
}

// Part is what an object is for.
type Part string

// Parts of a deployment.
const (
	Namespace Part = "namespace"
	CRD       Part = "crd"
	RBAC      Part = "rbac"
	// UserRoles are those of people who use the kinds of the project.
	UserRoles Part = "user-roles"
	// Extras are manifests of the project's own.
	Extras        Part = "extras"
	Metrics       Part = "metrics"
	Webhook       Part = "webhook"
	NetworkPolicy Part = "network-policy"
	Manager       Part = "manager"
	Prometheus    Part = "prometheus"
	// Records is the role of those who may read the records of reconciles.
	Records Part = WithRecords
	Grafana Part = WithGrafana
	Alerts  Part = WithAlerts
	// Server is the custom API server, with its account and roles.
	Server Part = "server"
)

// builder makes the objects of one project.
type builder struct {
	project  *project.Project
	settings Settings
	part     Part   // of the objects that are added
	account  string // of the part
	objects  []Object
	failed   error
}

// Objects are all objects that the operator of a project needs, in the order in which
// they can be applied: namespace, CRDs, accounts and roles, manifests
// of the project's own, the operator, webhooks.
func Objects(ctx context.Context, dir string, p *project.Project, s Settings) ([]Object, error) {
	generated, err := generated(ctx, dir)
	if err != nil {
		return nil, err
	}
	b := &builder{project: p, settings: s, part: Namespace, account: manager}
	b.add(object{
		"apiVersion": "v1", "kind": "Namespace",
		// The operator needs no more than the strictest of Kubernetes' standards.
		"metadata": object{"name": s.Namespace, "labels": merge(b.labels(), object{"pod-security.kubernetes.io/enforce": "restricted"})},
	})
	var converted []string
	b.part = CRD
	for _, o := range generated["crd"] {
		if hook := conversion(o); hook != nil {
			b.serve(hook)
			converted = append(converted, o["metadata"].(object)["name"].(string))
		}
		b.add(o)
	}
	b.part = RBAC
	b.add(b.namespaced("v1", "ServiceAccount", b.name("controller-manager")))
	b.roles(generated["rbac"])
	b.part = UserRoles
	for _, o := range generated["crd"] {
		b.userRoles(o)
	}
	b.part = Extras
	if err := b.extras(dir); err != nil {
		return nil, err
	}
	webhooks := generated["webhook"]
	called := len(webhooks)+len(converted) > 0
	if called {
		b.part = Webhook
		b.authority(converted)
	}
	b.part = Metrics
	b.metricsRoles()
	b.service(metricsService, "https", metricsPort, metricsPort)
	if called {
		b.part = Webhook
		b.service("webhook-service", "webhook", 443, webhookPort)
	}
	b.part = NetworkPolicy
	b.networkPolicy(called)
	b.part = Manager
	b.disruptionBudget()
	b.deployment(called)
	if s.has(WithRecords) {
		b.part = Records
		b.recordsReader()
	}
	if s.ServiceMonitor {
		b.part = Prometheus
		b.serviceMonitor()
	}
	if s.has(WithAlerts) {
		b.part = Alerts
		b.alerts()
	}
	if s.has(WithGrafana) {
		b.part = Grafana
		b.board()
	}
	b.part = Webhook
	for _, o := range webhooks {
		b.webhook(o)
	}
	if embedded := generated[embeddedDefinitions]; len(embedded) > 0 {
		b.part = Server
		b.server(embedded)
	}
	return b.objects, b.failed
}

// manager is the name of what belongs to the operator, metricsService that of the Service of
// its metrics, embeddedDefinitions the key of definitions that the custom API server embeds.
const (
	manager             = "controller-manager"
	metricsService      = "controller-manager-metrics-service"
	embeddedDefinitions = "embedded"
)

// generated are the manifests that are made of the types and markers, by generator.
func generated(ctx context.Context, dir string) (map[string][]object, error) {
	request, err := generate.Parse([]string{"crd", "rbac:roleName=manager-role,leaderElection=true", "webhook", "paths=./..."}, generate.Steer)
	if err != nil {
		return nil, err
	}
	request.Dir = dir
	result, err := generate.Run(ctx, request)
	if err != nil {
		return nil, err
	}
	out := map[string][]object{}
	for _, file := range result.Files {
		for document := range Documents(file.Data) {
			var o object
			if err := yaml.Unmarshal(document, &o); err != nil {
				return nil, fmt.Errorf("read what %s made: %w", file.Generator, err)
			}
			key := file.Generator
			if file.Embedded {
				key = embeddedDefinitions
			}
			out[key] = append(out[key], o)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the project has nothing to deploy: add a kind with steer create api")
	}
	return out, nil
}

// Documents are those of a stream that are not empty. A line that ends in dashes is part
// of a document.
func Documents(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for document := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---\n")) {
			if len(bytes.TrimSpace(document)) > 0 && !yield(document) {
				return
			}
		}
	}
}

// add takes an object over.
func (b *builder) add(o object) {
	metadata, _ := o["metadata"].(object)
	kind, _ := o["kind"].(string)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if kind == "" || name == "" {
		b.failed = cmp.Or(b.failed, fmt.Errorf("an object of kind %q has the name %q", kind, name))
	}
	b.objects = append(b.objects, Object{kind, namespace, name, b.part, o})
}

// name is that of an object that is not of a kind that the project defines.
func (b *builder) name(of string) string { return b.project.Name + "-" + of }

// labels are those that kubebuilder projects have.
func (b *builder) labels() object {
	return object{"app.kubernetes.io/name": b.project.Name, "app.kubernetes.io/managed-by": "steer"}
}

// selector finds the Pods of the part.
func (b *builder) selector() object {
	return object{"app.kubernetes.io/name": b.project.Name, "control-plane": b.account}
}

// namespaced begins an object in the namespace of the operator.
func (b *builder) namespaced(apiVersion, kind, name string) object {
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": object{
		"name": name, "namespace": b.settings.Namespace, "labels": b.labels(),
	}}
}

// global begins an object in no namespace.
func (b *builder) global(apiVersion, kind, name string) object {
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": name, "labels": b.labels()}}
}

// merge is a and b.
func merge(a, b object) object {
	out := object{}
	for _, from := range []object{a, b} {
		for key, value := range from {
			out[key] = value
		}
	}
	return out
}

// YAML are objects as one stream of documents, with keys in order.
func YAML(objects []Object) ([]byte, error) {
	var out bytes.Buffer
	for _, o := range objects {
		text, err := o.YAML()
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// YAML is the object as a document, with keys in order.
func (o Object) YAML() ([]byte, error) {
	text, err := yaml.Marshal(o.content)
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", o.Kind, o.Name, err)
	}
	return text, nil
}

// Converted reports whether the object is a definition whose versions a webhook converts.
func (o Object) Converted() bool { return o.Part == CRD && conversion(o.content) != nil }

// rules are a list of rules of a role.
func rules(list ...object) []any {
	out := make([]any, len(list))
	for i, rule := range list {
		out[i] = rule
	}
	return out
}

func rule(group, resource string, verbs ...string) object {
	return object{"apiGroups": texts(group), "resources": texts(resource), "verbs": texts(verbs...)}
}

// only limits a rule to objects of some names.
func only(rule object, names ...string) object {
	rule["resourceNames"] = texts(names...)
	return rule
}

func texts(list ...string) []any {
	out := make([]any, 0, len(list))
	for _, text := range slices.Clone(list) {
		out = append(out, text)
	}
	return out
}
