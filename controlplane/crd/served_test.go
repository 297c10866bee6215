// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
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

// TestNamesAreSettledAnewByALeader frees a name as a server would that ends before it has
// settled those who wait for it.
func TestNamesAreSettledAnewByALeader(t *testing.T) {
	t.Parallel()
	var own part.Part
	server, api := serve(t, func(d *part.Deps) part.List { return nil })
	own = server.Definitions(t)
	api.must("POST", definitions, sharing("Alpha", "same"))
	api.must("POST", definitions, sharing("Beta", "same"))
	if _, err := server.Store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: crd.Bucket, Name: "alphas.example.com"}, Expect: storage.AnyRevision}); err != nil {
		t.Fatal(err)
	}
	for _, follow := range []func() error{
		func() error { return own.Load(t.Context()) },
	} {
		if err := follow(); err != nil {
			t.Fatal(err)
		}
	}
	_ = resource.Create
	_ = core.Resources
	_ = parttest.Admin
}
