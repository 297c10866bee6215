// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/client/manifest"
)

const (
	// Administrator as Options.Role lets the operator do everything.
	Administrator = "system:masters"
	// defaultRole is where kubebuilder projects keep what is generated from
	// +kubebuilder:rbac markers.
	defaultRole = "config/rbac/role.yaml"
	// serviceAccount and its namespace are the operator's.
	serviceAccount, serviceAccountNamespace = "operator", "steertest"
)

// configOfOperator returns the configuration that the operator gets: of a
// service account to which the generated roles are bound.
func (e *Env) configOfOperator() *rest.Config {
	e.Helper()
	role := e.options.Role
	if role == Administrator {
		return e.operatorOf(e.Config)
	}
	path, err := find(cmp.Or(role, defaultRole))
	if role == "" && errors.Is(err, fs.ErrNotExist) {
		return e.operatorOf(e.Config)
	}
	var roles []manifest.Object
	if err == nil {
		roles, err = manifest.Read(path)
	}
	if err == nil {
		err = e.bind(roles)
	}
	if err != nil {
		e.Fatalf("steertest: the role of the operator: %v", err)
	}
	namespace := e.accountNamespace()
	cfg := e.operatorOf(e.configFor(&auth.User{
		Name:   "system:serviceaccount:" + namespace + ":" + serviceAccount,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, auth.Authenticated},
	}))
	watcher := &refusals{report: e.fail, file: path, told: map[string]bool{}}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &watched{next, watcher} })
	return cfg
}

// operatorOf is cfg for the operator, whose writes are noted.
func (e *Env) operatorOf(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &noted{next, &e.writes} })
	return cfg
}

// accountNamespace is where the service account of the operator is.
func (e *Env) accountNamespace() string {
	if e.Plane == nil {
		return e.Namespace
	}
	return serviceAccountNamespace
}

// bind creates the roles, and binds each to the service account of the operator.
func (e *Env) bind(roles []manifest.Object) error {
	namespaces := map[string]bool{e.accountNamespace(): true}
	var objects []manifest.Object
	for _, role := range roles {
		kind, namespace := role.GetKind(), role.GetNamespace()
		if !strings.HasSuffix(kind, "Role") { // what else is in the folder is deployment
			continue
		}
		if kind == "Role" && namespace == "" {
			namespace = e.Namespace
		}
		if namespace != "" {
			namespaces[namespace] = true
		}
		if e.Plane == nil { // the role of this test, whatever others call theirs
			role.Unstructured = role.DeepCopy()
			role.SetName(e.Namespace + "-" + role.GetName())
			e.remove(role.Unstructured)
		}
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding",
			"metadata": map[string]any{"name": "steertest-" + role.GetName()},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role.GetName()},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": serviceAccount, "namespace": e.accountNamespace()}},
		}}
		binding.SetNamespace(namespace)
		if e.Plane == nil {
			e.remove(binding)
		}
		objects = append(objects, role, manifest.Object{Unstructured: binding, File: role.File})
	}
	if len(objects) == 0 {
		return errors.New("the file holds no ClusterRole and no Role: generate it with `steer generate rbac:roleName=...`, " +
			"or say Role: steertest.Administrator")
	}
	if e.Plane == nil {
		delete(namespaces, e.Namespace)
		for _, other := range slices.Sorted(maps.Keys(namespaces)) {
			e.skip("a Role in namespace " + other)
		}
	}
	var first []manifest.Object
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		first = append(first, manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}}})
	}
	return manifest.Apply(e.ctx, e.Client, "", append(first, objects...))
}

// refusals turns the requests that the roles do not allow into failures of the
// test, each kind of request once.
type refusals struct {
	report func(err error, advice string)
	file   string

	mu   sync.Mutex
	told map[string]bool
}

// watched is the operator's way to the control plane.
type watched struct {
	http.RoundTripper
	refusals *refusals
}

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.refusals.look(body)
	return resp, nil
}

// refusal is what an authorizer says, in a status of any encoding.
var refusal = regexp.MustCompile(` cannot (\S+) resource \\?"([^"\\]+)\\?" in API group \\?"([^"\\]*)\\?"`)

// look reports a refusal by the authorizer; admission refuses with the same
// status and other words.
func (f *refusals) look(body []byte) {
	said := refusal.FindSubmatch(body)
	if said == nil {
		return
	}
	verb, resource, group := string(said[1]), string(said[2]), string(said[3])
	line := marker(group, resource, verb)
	f.mu.Lock()
	known := f.told[line]
	f.told[line] = true
	f.mu.Unlock()
	if !known {
		advice := "Add this marker above Reconcile and run `steer generate`:\n\t" + line
		if group == "coordination.k8s.io" && resource == "leases" {
			advice = "Leader election has a Role of its own, which `steer generate rbac:roleName=NAME,leaderElection=true` makes"
		}
		f.report(fmt.Errorf("the operator may not %s %s: its role (%s) lacks a rule", verb, resource, f.file), advice)
	}
}

// marker is the line that makes the generated role allow it. Who lists a kind
// wants to watch it next.
func marker(group, resource, verb string) string {
	if group == "" {
		group = `""`
	}
	if verb == "list" || verb == "watch" {
		verb = "get;list;watch"
	}
	return fmt.Sprintf("// +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s", group, resource, verb)
}
