// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubeAPIServer is the kube-apiserver of STEERTEST_KUBECONFIG, which `.ci/run deploy` starts, and
// a kubectl for it.
func kubeAPIServer(t *testing.T) (c *cluster, kubectl func(args ...string) string) {
	kubeconfig := os.Getenv("STEERTEST_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("STEERTEST_KUBECONFIG names no kube-apiserver: run make deploy")
	}
	program, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl")
	}
	c = newCluster(t, kubeconfig)
	return c, func(args ...string) string {
		t.Helper()
		return c.mustIn("", program, args...)
	}
}

// addField adds a field to the type of the project.
func addField(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "api", "v1", "guestbook_types.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const before = "type GuestbookSpec struct {\n"
	after := strings.Replace(string(text), before, before+"\t// Pages is how many pages there are.\n\t// +optional\n\tPages int32 `json:\"pages,omitempty\"`\n\n", 1)
	if after == string(text) {
		t.Fatalf("%s has no %q", file, before)
	}
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	crd = "guestbooks.webapp.example.com"
	// typeOfPages is the type of the field of addField in the definition.
	typeOfPages = "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.pages.type}"
)

// conditionEstablished makes kubectl print whether a CRD is served.
const conditionEstablished = `go-template={{range .status.conditions}}{{if eq .type "Established"}}{{.status}}{{end}}{{end}}`

// established waits until the API server serves a CRD: kubectl wait fails while a CRD has no
// conditions.
func established(t *testing.T, get func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for get() != "True" {
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatal("the CRD is not established")
		}
	}
}

// TestChartOnKubeAPIServer lets Helm install a chart, upgrade it to a further field of
// the type and to other values, take the upgrade back, and uninstall it: the CRD follows
// the chart, and stays. There are no controllers beside kube-apiserver, so that nothing
// waits for Pods.
func TestChartOnKubeAPIServer(t *testing.T) {
	c, kubectl := kubeAPIServer(t)
	dir := c.project()
	const namespace = "chart-system"
	chart := filepath.Join(dir, "dist", "chart")
	in := []string{"--namespace", namespace}
	helm := func(args ...string) string { t.Helper(); return c.must(append(args, in...)...) }

	helm("install", "guestbook", chart, "--create-namespace")
	established(t, func() string { return kubectl("get", "crd", crd, "-o", conditionEstablished) })
	c.equal("type of the field before the upgrade", "", kubectl("get", "crd", crd, "-o", typeOfPages))
	addField(t, dir)
	c.mustIn(dir, c.steer, "package", "helm")
	helm("upgrade", "guestbook", chart, "--set", "manager.replicas=3")
	c.equal("type of the field after the upgrade", "integer", kubectl("get", "crd", crd, "-o", typeOfPages))
	replicas := []string{"get", "deployment", "guestbook-controller-manager", "--namespace", namespace, "-o", "jsonpath={.spec.replicas}"}
	c.equal("replicas after the upgrade", "3", kubectl(replicas...))
	helm("rollback", "guestbook", "1")
	c.equal("replicas after the rollback", "1", kubectl(replicas...))
	c.equal("type of the field after the rollback", "", kubectl("get", "crd", crd, "-o", typeOfPages))
	c.equal("history", "1 superseded Install complete\n2 superseded Upgrade complete\n3 deployed Rollback to 1", c.history("guestbook", in...))
	helm("uninstall", "guestbook")
	left := "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
	c.equal("objects of the release after it was uninstalled", "", kubectl("get", left, "-o", "name", "--namespace", namespace, "-l", "app.kubernetes.io/name=guestbook"))
	c.equal("the CRD after the release was uninstalled", "customresourcedefinition.apiextensions.k8s.io/"+crd+"\n", kubectl("get", "crd", crd, "-o", "name"))
	kubectl("delete", "crd", crd)
}

// TestManifestsOnKubeAPIServer applies what package yaml writes, with strict validation,
// a second time without a change, and after a field was added to the type.
func TestManifestsOnKubeAPIServer(t *testing.T) {
	c, kubectl := kubeAPIServer(t)
	dir := c.project()
	manifest := filepath.Join(dir, "dist", "install.yaml")
	apply := func() { t.Helper(); kubectl("apply", "--server-side", "--validate=strict", "-f", manifest) }
	versions := func() string {
		t.Helper()
		return kubectl("get", "-f", manifest, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation} {.metadata.uid}{"\n"}{end}`)
	}
	apply()
	established(t, func() string { return kubectl("get", "crd", crd, "-o", conditionEstablished) })
	first := versions()
	apply()
	c.equal("objects after they were applied again", first, versions())
	addField(t, dir)
	c.mustIn(dir, c.steer, "package", "yaml")
	apply()
	c.equal("type of the field after the upgrade", "integer", kubectl("get", "crd", crd, "-o", typeOfPages))
	kubectl("delete", "--wait=false", "-f", manifest)
}

// TestServerOnKubeAPIServer applies what package yaml writes of a project with a custom API
// server, with strict validation, and a second time without a change. The APIService names
// the Service of the server, which has no Pods here: its group is not served, and there is
// no CRD of it. The account of the server may do what its objects say, and no more.
func TestServerOnKubeAPIServer(t *testing.T) {
	c, kubectl := kubeAPIServer(t)
	dir := c.project()
	c.mustIn(dir, c.steer, "create", "server", "--group", "notes", "--version", "v1", "--kind", "Note")
	c.mustIn(dir, c.steer, "package", "yaml")
	manifest := filepath.Join(dir, "dist", "install.yaml")
	apply := func() string {
		t.Helper()
		return kubectl("apply", "--server-side", "--validate=strict", "-f", manifest)
	}
	versions := func() string {
		t.Helper()
		return kubectl("get", "-f", manifest, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation} {.metadata.uid}{"\n"}{end}`)
	}
	defer kubectl("delete", "--wait=false", "-f", manifest)
	apply()
	first := versions()
	apply()
	c.equal("objects after they were applied again", first, versions())
	const (
		apiService = "v1.notes.example.com"
		namespace  = "guestbook-system"
		account    = "system:serviceaccount:" + namespace + ":guestbook-server"
	)
	c.equal("Service of the APIService", namespace+"/guestbook-server",
		kubectl("get", "apiservice", apiService, "-o", "jsonpath={.spec.service.namespace}/{.spec.service.name}"))
	c.equal("CRDs of the server's group", "", kubectl("get", "crd", "-o", `jsonpath={.items[?(@.spec.group=="notes.example.com")].metadata.name}`))
	program, err := exec.LookPath("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{
		"patch apiservices/" + apiService:                                  "yes",
		"delete apiservices/" + apiService:                                 "no",
		"create subjectaccessreviews.authorization.k8s.io":                 "yes",
		"create secrets -n " + namespace:                                   "yes",
		"list secrets -n " + namespace:                                     "no",
		"get configmaps/extension-apiserver-authentication -n kube-system": "yes",
	} {
		args := append([]string{"auth", "can-i", "--as", account, "--as-group", "system:authenticated"}, strings.Fields(question)...)
		answer, err := c.runProgram("", program, args...) // "no" is an exit status as well
		if got := strings.TrimSpace(answer); got != want {
			t.Errorf("may the server %s: %q (%v), want %s", question, got, err, want)
		}
	}
}
