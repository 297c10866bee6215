// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/storage"
)

// conditions returns the conditions of a definition, "type=status reason: message" each.
func (a *api) conditions(name string) string {
	a.tb.Helper()
	var out []string
	list, _, _ := unstructured.NestedSlice(a.must("GET", definitions+"/"+name, "").Object, "status", "conditions")
	for _, c := range list {
		c := c.(map[string]any)
		out = append(out, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string)+": "+c["message"].(string))
	}
	return strings.Join(out, "\n")
}

// acceptedConditions are those of a definition that is served, waitingConditions those of
// one that waits for the short name "same".
const (
	acceptedConditions = "NamesAccepted=True NoConflicts: no conflicts found\n" +
		"Established=True InitialNamesAccepted: the initial names have been accepted"
	waitingConditions = "NamesAccepted=False ShortNamesConflict: \"same\" is already in use\n" +
		"Established=False NotAccepted: not all names are accepted"
)

// code returns the status with which a GET is answered.
func (a *api) code(path string) int {
	a.tb.Helper()
	code, _ := a.do("GET", path, "")
	return code
}

func TestNamesGoToTheDefinitionThatWaitsForThem(t *testing.T) {
	t.Parallel()
	for what, free := range map[string]func(*api){
		"deleted": func(a *api) { a.must("DELETE", definitions+"/alphas.example.com", "") },
		"renamed": func(a *api) {
			a.must("PATCH", definitions+"/alphas.example.com", "spec: {names: {shortNames: [other]}}")
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, api := serve(t)
			api.must("POST", definitions, sharing("Alpha", "same"))
			api.must("POST", definitions, sharing("Beta", "same"))
			api.must("POST", definitions, strings.ReplaceAll(sharing("Gamma", "same"), "example.com", "example.org"))
			equal(t, "the first", acceptedConditions, api.conditions("alphas.example.com"))
			equal(t, "the second", waitingConditions, api.conditions("betas.example.com"))
			equal(t, "one of another group", acceptedConditions, api.conditions("gammas.example.org"))
			equal(t, "the answer for objects of the second", 404, api.code("/apis/example.com/v1/betas"))
			free(api)
			equal(t, "the second, once the name is free", acceptedConditions, api.conditions("betas.example.com"))
			equal(t, "the answer for its objects", 200, api.code("/apis/example.com/v1/betas"))
		})
	}
}

// store writes a definition as another server of the same store does; nil deletes it.
func store(t *testing.T, s *componenttest.Server, name string, definition *unstructured.Unstructured) {
	t.Helper()
	w := storage.Write{Key: storage.Key{Bucket: crd.Bucket, Name: name}, Expect: storage.AnyRevision}
	if definition != nil {
		var err error
		if w.Value, err = definition.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Store.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

func TestDefinitionsOfOtherServersAreLoaded(t *testing.T) {
	t.Parallel()
	server, api := serve(t)
	_, other := serve(t)
	load := func() {
		t.Helper()
		if err := api.own.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	alphas, betas := other.must("POST", definitions, sharing("Alpha", "same")), other.must("POST", definitions, sharing("Beta", "other"))
	store(t, server, "alphas.example.com", alphas)
	equal(t, "the answer for objects before Load", 404, api.code("/apis/example.com/v1/alphas"))
	load()
	equal(t, "the answer for objects after Load", 200, api.code("/apis/example.com/v1/alphas"))

	// Another server accepted the name of the first for a second one.
	if err := unstructured.SetNestedStringSlice(betas.Object, []string{"same"}, "status", "acceptedNames", "shortNames"); err != nil {
		t.Fatal(err)
	}
	store(t, server, "betas.example.com", betas)
	load()
	equal(t, "the answer for objects of a definition that clashes", 404, api.code("/apis/example.com/v1/betas"))
	store(t, server, "alphas.example.com", nil)
	load()
	equal(t, "the answers once the first has gone", [2]int{404, 200}, [2]int{api.code("/apis/example.com/v1/alphas"), api.code("/apis/example.com/v1/betas")})

	betas.Object["spec"] = "broken"
	store(t, server, "betas.example.com", betas)
	store(t, server, "gadgets.example.com", other.must("POST", definitions, schemaOf("{size: {type: integer}}")))
	load() // one that cannot be decoded keeps no other from being served
	equal(t, "the answer for its objects", 200, api.code("/apis/example.com/v1/betas"))
	equal(t, "the answer for objects of the other one", 200, api.code(gadgets))
}

// TestDefinitionsThatClashGiveTheirNamesUp stores what two servers did that accepted one name at
// the same time.
func TestDefinitionsThatClashGiveTheirNamesUp(t *testing.T) {
	t.Parallel()
	server, api := serve(t)
	_, other := serve(t)
	api.must("POST", definitions, sharing("Alpha", "same"))
	store(t, server, "betas.example.com", other.must("POST", definitions, sharing("Beta", "same")))
	api.must("PATCH", definitions+"/betas.example.com", "metadata: {labels: {a: b}}")
	equal(t, "the conditions", waitingConditions, api.conditions("betas.example.com"))
	names, _, _ := unstructured.NestedMap(api.must("GET", definitions+"/betas.example.com", "").Object, "status", "acceptedNames")
	equal(t, "the names that are left", map[string]any{"plural": "betas", "singular": "beta", "kind": "Beta", "listKind": "BetaList"}, names)
}

// TestNamesAreSettledAnewByALeader frees a name as a server does that ends before it has settled
// those who wait for it.
func TestNamesAreSettledAnewByALeader(t *testing.T) {
	t.Parallel()
	server, api := serve(t)
	api.must("POST", definitions, sharing("Alpha", "same"))
	api.must("POST", definitions, sharing("Beta", "same"))
	store(t, server, "alphas.example.com", nil)
	if err := api.own.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "the conditions before", waitingConditions, api.conditions("betas.example.com"))
	if err := api.own.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Upkeep.Repeat(t.Context())
	equal(t, "the conditions afterwards", acceptedConditions, api.conditions("betas.example.com"))
	equal(t, "the answer for its objects", 200, api.code("/apis/example.com/v1/betas"))
}

// refusing refuses writes of a subresource while it is told to.
type refusing struct {
	subresource string
	now         bool
}

func (r *refusing) Admit(_ context.Context, q *resource.AdmissionRequest) error {
	if r.now && q.Subresource == r.subresource {
		return apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	}
	return nil
}

func (r *refusing) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// TestNamesThatCannotBeSettledDoNotFailWhoFreesThem has a webhook refuse what the server does
// for itself after the request of a user.
func TestNamesThatCannotBeSettledDoNotFailWhoFreesThem(t *testing.T) {
	t.Parallel()
	webhook := &refusing{subresource: "status"}
	server, api := serve(t, func(*component.Deps) component.List { return component.List{{Name: "webhook", Admission: webhook}} })
	api.must("POST", definitions, sharing("Alpha", "same"))
	api.must("POST", definitions, sharing("Beta", "same"))
	webhook.now = true
	api.must("PATCH", definitions+"/alphas.example.com", `{spec: {names: {shortNames: [other]}}}`)
	equal(t, "the conditions before", waitingConditions, api.conditions("betas.example.com"))
	webhook.now = false
	server.Upkeep.Repeat(t.Context())
	equal(t, "the conditions afterwards", acceptedConditions, api.conditions("betas.example.com"))
}

func TestDefinitionOfABuiltInKindIsNotServed(t *testing.T) {
	t.Parallel()
	_, api := serve(t, func(*component.Deps) component.List {
		return component.List{{Name: "kinds", Resources: core.Resources()}}
	})
	definition := strings.NewReplacer("name: gadgets.example.com", "name: ingresses.networking.k8s.io, annotations: {api-approved.kubernetes.io: 'https://github.com/kubernetes/kubernetes/pull/1'}",
		"example.com", "networking.k8s.io", "gadgets", "ingresses", "Gadget", "Ingress").Replace(schemaOf("{size: {type: integer}}"))
	api.must("POST", definitions, definition)
	equal(t, "its conditions", "KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation: approved in https://github.com/kubernetes/kubernetes/pull/1\n"+acceptedConditions,
		api.conditions("ingresses.networking.k8s.io"))
	const ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	equal(t, "an object that the rules of the built-in kind refuse", `422 Invalid: Ingress.networking.k8s.io "a" is invalid: spec: Invalid value: null: either `+"`defaultBackend` or `rules` must be specified",
		api.refused("POST", ingresses, "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {}}"))
	api.must("DELETE", definitions+"/ingresses.networking.k8s.io", "")
	equal(t, "the answer for objects of the built-in kind", 200, api.code(ingresses))
}

func TestDefinitionThatIsBeingDeletedRefusesNewObjects(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	api.must("POST", definitions, schemaOf("{size: {type: integer}}"))
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a, finalizers: [example.com/f]}}")
	api.must("DELETE", definitions+"/gadgets.example.com", "")
	equal(t, "a creation", `403 Forbidden: gadgets.example.com "b" is forbidden: create not allowed while custom resource definition is terminating`,
		api.refused("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b}}"))
	api.must("PATCH", gadgets+"/a", "metadata: {labels: {a: b}}")
	equal(t, "the objects", []string{"a"}, api.names(gadgets))
	api.must("PATCH", gadgets+"/a", "metadata: {finalizers: null}")
	equal(t, "the answer for objects once the last has gone", 404, api.code(gadgets))
	equal(t, "the answer for the definition", 404, api.code(definitions+"/gadgets.example.com"))
}

func TestDefinitionStatusUpdateKeepsTheSpec(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	before := api.must("POST", definitions, schemaOf("{size: {type: integer}}"))
	changed := before.DeepCopy()
	for _, change := range []struct {
		value any
		at    []string
	}{
		{"Changed", []string{"spec", "names", "kind"}},
		{[]any{"v1", "v2"}, []string{"status", "storedVersions"}},
	} {
		if err := unstructured.SetNestedField(changed.Object, change.value, change.at...); err != nil {
			t.Fatal(err)
		}
	}
	body, err := changed.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	after := api.must("PUT", definitions+"/gadgets.example.com/status", string(body))
	equal(t, "the spec", before.Object["spec"], after.Object["spec"])
	equal(t, "the generation", before.GetGeneration(), after.GetGeneration())
	stored, _, _ := unstructured.NestedStringSlice(after.Object, "status", "storedVersions")
	equal(t, "the stored versions", []string{"v1", "v2"}, stored)
}
