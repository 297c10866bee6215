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

// withoutRole is logged where there is no role and the test does not say that there
// shall be none.
const withoutRole = "there is no " + defaultRole + ": the operator runs as an administrator, and the test does not show which permissions it lacks. " +
	"Add a marker such as\n\t// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch\n" +
	"above Reconcile and run `steer generate`, or set Options{Role: steertest.Administrator}"

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
		e.Log("steertest: " + withoutRole)
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
	administrator, err := rest.TransportFor(e.Config)
	if err != nil {
		e.Fatalf("steertest: the role of the operator: %v", err)
	}
	e.refusals = &refusals{file: path, administrator: administrator, missing: map[string][]string{}}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &underRole{next, e.refusals} })
	return cfg
}

// operatorOf is cfg for the operator, whose writes are noted.
func (e *Env) operatorOf(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &noted{next, &e.writes, &e.rights} })
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
			role.SetNamespace(namespace)
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
	return manifest.Apply(e.ctx, e.Client, e.Namespace, append(first, objects...))
}

// checkRole fails the test with all markers that the role lacks.
func (e *Env) checkRole() {
	e.Helper()
	if e.refusals == nil {
		return
	}
	if advice := e.refusals.advice(); advice != "" {
		e.Errorf("steertest: the role of the operator (%s) lacks rules. Its requests were let through, so that all are found in one run.\n%s", e.refusals.file, advice)
	}
}

// refusals lets the requests that the roles do not allow through, and notes them.
// It is safe for concurrent use.
type refusals struct {
	file          string
	administrator http.RoundTripper

	mu      sync.Mutex
	missing map[string][]string // verbs by the groups and resources of a marker
}

// underRole is the operator's way to the control plane.
type underRole struct {
	http.RoundTripper
	refusals *refusals
}

// RoundTrip implements http.RoundTripper.
func (u *underRole) RoundTrip(r *http.Request) (*http.Response, error) {
	again := r.Clone(r.Context())
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, again.Body = io.NopCloser(bytes.NewReader(content)), io.NopCloser(bytes.NewReader(content))
	}
	resp, err := u.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	what, verb := refused(body)
	if verb == "" {
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	u.refusals.note(what, verb)
	resp, err = u.refusals.administrator.RoundTrip(again)
	if err == nil && verb == "patch" && resp.StatusCode == http.StatusCreated { // an apply that creates needs both
		u.refusals.note(what, "create")
	}
	return resp, err
}

// leases are what leader election needs.
const leases = "groups=coordination.k8s.io,resources=leases"

// refusal is what an authorizer says, in a status of any encoding.
var refusal = regexp.MustCompile(` cannot (\S+) resource \\?"([^"\\]+)\\?" in API group \\?"([^"\\]*)\\?"`)

// refused returns what an authorizer refused, as the groups and resources of a
// marker, and the verb; that is empty when admission refused, with the same status.
func refused(body []byte) (what, verb string) {
	said := refusal.FindSubmatch(body)
	if said == nil {
		return "", ""
	}
	return fmt.Sprintf("groups=%s,resources=%s", cmp.Or(string(said[3]), `""`), said[2]), string(said[1])
}

// note notes that a verb is missing.
func (f *refusals) note(what, verb string) {
	verbs := []string{verb}
	switch {
	case verb == "list" || verb == "watch": // an informer needs both, and reads beside it get
		verbs = []string{"get", "list", "watch"}
	case strings.HasSuffix(what, ",resources=events"): // one that happens again is patched
		verbs = []string{"create", "patch"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, verb := range verbs {
		if !slices.Contains(f.missing[what], verb) {
			f.missing[what] = append(f.missing[what], verb)
		}
	}
}

// advice says what to add for the requests that were refused; empty for none.
func (f *refusals) advice() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(f.missing)) {
		if what != leases {
			lines = append(lines, fmt.Sprintf("\t// +kubebuilder:rbac:%s,verbs=%s", what, strings.Join(f.missing[what], ";")))
		}
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, "Add these markers above Reconcile and run `steer generate`:")
	}
	if len(f.missing[leases]) > 0 {
		lines = append(lines, "Leader election has a Role of its own, which `steer generate rbac:roleName=NAME,leaderElection=true` makes.")
	}
	return strings.Join(lines, "\n")
}
