// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/controlplane"
)

// The rights are those that the documentation of package extension lists.
const extensionRights = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: notes}, rules: [
{apiGroups: [""], resources: [secrets], verbs: [create]},
{apiGroups: [""], resources: [secrets], resourceNames: [notes-ca], verbs: [get, update]},
{apiGroups: [""], resources: [namespaces], verbs: [get]},
{apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [create]},
{apiGroups: [apiregistration.k8s.io], resources: [apiservices], resourceNames: [v1.example.com], verbs: [get, patch]}]}`

func TestExtensionServerRegistersItselfWithItsRights(t *testing.T) {
	t.Parallel()
	plane, api := listening(t, controlplane.Options{ManualControllers: true})
	const subject = `subjects: [{kind: ServiceAccount, name: notes, namespace: default}]`
	const roles = "/apis/rbac.authorization.k8s.io/v1"
	api.must("POST", roles+"/clusterroles", extensionRights)
	for name, role := range map[string]string{"notes": "notes", "notes-delegation": "system:auth-delegator"} {
		api.must("POST", roles+"/clusterrolebindings", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding,
metadata: {name: `+name+`}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "`+role+`"}, `+subject+`}`)
	}
	api.must("POST", roles+"/namespaces/kube-system/rolebindings", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
metadata: {name: notes}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}, `+subject+`}`)

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := plane.RESTConfig()
	config.Impersonate.UserName = "system:serviceaccount:default:notes"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}
	ctx, cancel := context.WithCancel(t.Context())
	running, ended := context.WithCancelCause(t.Context())
	go func() {
		ended(extension.Run(ctx, nil, extension.Server{
			Name: "notes",
			Kinds: func(context.Context) ([]extension.Kind, error) {
				return []extension.Kind{custom.Kind[*unstructured.Unstructured]{Definition: []byte(noteDefinition)}}, nil
			},
			Configure: func(o *extension.Options) {
				o.Cluster, o.Listener, o.Drain, o.Log = config, listener, -1, slog.New(slog.NewTextHandler(t.Output(), nil))
			},
		}))
	}()
	defer func() {
		cancel()
		if <-running.Done(); !errors.Is(context.Cause(running), context.Canceled) {
			t.Error(context.Cause(running))
		}
	}()
	watch := api.open(running, "GET", "/apis/apiregistration.k8s.io/v1/apiservices?watch=true&fieldSelector=metadata.name%3Dv1.example.com", "")
	defer watch.Body.Close()
	var event struct {
		Type   string
		Object struct {
			Spec struct {
				CABundle []byte
				Service  struct{ Namespace, Name string }
			}
		}
	}
	if err := json.NewDecoder(watch.Body).Decode(&event); err != nil { // when it is registered
		t.Fatal(errors.Join(err, context.Cause(running)))
	}
	spec := event.Object.Spec
	if event.Type != "ADDED" || spec.Service.Namespace != "default" || spec.Service.Name != "notes" {
		t.Errorf("registered as %+v", event)
	}
	secret := api.must("GET", "/api/v1/namespaces/default/secrets/notes-ca", "")
	if want, _, _ := unstructured.NestedString(secret.Object, "data", "ca.crt"); want == "" || want != base64.StdEncoding.EncodeToString(spec.CABundle) {
		t.Errorf("the caBundle is %s, that of the Secret %s", spec.CABundle, want)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(spec.CABundle)
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "notes.default.svc", MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatalf("a client with the caBundle: %v", err)
	}
	_ = conn.Close()
}
