// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/steertest/internal/host"
	"github.com/steer-dev/steer/steertest/internal/permissions"
)

const (
	// Administrator as Options.Role lets the operator do everything.
	Administrator = "system:masters"
	// defaultRole is where kubebuilder projects keep what is generated from
	// +kubebuilder:rbac markers.
	defaultRole = "config/rbac/role.yaml"
	// leaderRole lies beside it where what a leader needs is not generated.
	leaderRole = "leader_election_role.yaml"
	// serviceAccount and its namespace are the operator's.
	serviceAccount, serviceAccountNamespace = "operator", "steertest"
)

// withoutRole is logged where there is no role and the test does not say that there
// shall be none.
const withoutRole = "there is no " + defaultRole + ": the operator runs as an administrator, and the test does not show which permissions it lacks. " +
	"Add a marker such as\n\t// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch\n" +
	"above Reconcile and run `steer generate`, or set Options{Role: steertest.Administrator}"

// RightsVariable is the environment variable with the path of a folder. Where it is
// set, every [Env] with an operator writes a file there when its test ends: the name of
// the test, and one line for each right that the operator used, in the form of the
// arguments of a +kubebuilder:rbac marker with one resource and one verb:
//
//	TestScales
//	groups=apps,resources=deployments,verbs=create
//
// Requests that were refused count; see [Options.Role]. `steer test` sets it, and
// compares the files with the markers.
const RightsVariable = "STEERTEST_RIGHTS"

// configOfOperator returns the configuration that the operator gets: of a
// service account to which the generated roles are bound.
func (e *Env) configOfOperator() *rest.Config {
	e.Helper()
	role := e.options.Role
	if role == Administrator {
		return e.operatorOf(e.Config)
	}
	path, err := host.Find(cmp.Or(role, defaultRole))
	if role == "" && errors.Is(err, fs.ErrNotExist) {
		e.Log("steertest: " + withoutRole)
		return e.operatorOf(e.Config)
	}
	var roles []manifest.Object
	if err == nil {
		paths := []string{path}
		if leader := filepath.Join(filepath.Dir(path), leaderRole); filepath.Base(path) == filepath.Base(defaultRole) && exists(leader) {
			paths = append(paths, leader)
		}
		roles, err = manifest.Read(paths...)
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
	e.roleFile, e.refusals = path, permissions.NewRefusals(administrator)
	cfg.Wrap(e.refusals.Wrap)
	return cfg
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// operatorOf is cfg for the operator, whose writes are noted.
func (e *Env) operatorOf(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &host.Noted{RoundTripper: next, To: &e.writes, Rights: &e.rights}
	})
	return cfg
}

// accountNamespace is where the service account of the operator is.
func (e *Env) accountNamespace() string {
	if e.Plane == nil {
		return e.Namespace
	}
	return serviceAccountNamespace
}

// placeholder is the namespace that generated manifests name in place of the operator's own:
// kustomize, and steer package, write that there.
const placeholder = "system"

// bind creates the roles, and binds each to the service account of the operator. On an API
// server that others use the operator's own namespace is that of the test.
func (e *Env) bind(roles []manifest.Object) error {
	namespaces := map[string]bool{e.accountNamespace(): true}
	var objects []manifest.Object
	for _, role := range roles {
		kind, namespace := role.GetKind(), role.GetNamespace()
		if !strings.HasSuffix(kind, "Role") { // what else is in the folder is deployment
			continue
		}
		if kind == "Role" && (namespace == "" || namespace == placeholder && e.Plane == nil) {
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

// writeRights writes the file that [RightsVariable] asks for.
func (e *Env) writeRights() {
	e.Helper()
	if folder := os.Getenv(RightsVariable); folder != "" {
		if err := e.rights.Write(folder, e.Name()); err != nil {
			e.Errorf("steertest: %s: %v", RightsVariable, err)
		}
	}
}

// checkRole fails the test with all markers that the role lacks.
func (e *Env) checkRole() {
	e.Helper()
	if e.refusals == nil {
		return
	}
	if advice := e.refusals.Advice(); advice != "" {
		e.Errorf("steertest: the role of the operator (%s) lacks rules. Its requests were let through, so that all are found in one run.\n%s", e.roleFile, advice)
	}
}
