// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"bufio"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane/component/componenttest"
)

// schemaOf returns a definition of gadgets with the given properties of spec.
func schemaOf(properties string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: ` + properties + `}}}}}
`
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

const gadgets = "/apis/example.com/v1/namespaces/default/gadgets"

func TestCustomResourcesFollowTheirSchema(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	api.must("POST", definitions, schemaOf("{size: {type: integer}, old: {type: string}}"))
	created := api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1, old: x}}")

	crd := definitions + "/gadgets.example.com"
	api.must("PATCH", crd, "spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}}}}}]}")
	want := map[string]any{"size": int64(1), "colour": "red"}
	for _, path := range []string{gadgets + "/a", gadgets} {
		found := api.must("GET", path, "")
		if path == gadgets {
			items, _, _ := unstructured.NestedSlice(found.Object, "items")
			found = &unstructured.Unstructured{Object: items[0].(map[string]any)}
		}
		equal(t, "spec under the new schema", want, found.Object["spec"])
		equal(t, "resource version", created.GetResourceVersion(), found.GetResourceVersion())
	}
	// The next write stores it so.
	updated := api.must("PATCH", gadgets+"/a", "spec: {size: 2}")
	equal(t, "spec after an update", map[string]any{"size": int64(2), "colour": "red"}, updated.Object["spec"])
}

func TestDefinitionChangesEndTheWatchesOfTheirObjects(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	api.must("POST", definitions, schemaOf("{size: {type: integer}}"))
	watch := api.open(t.Context(), "GET", gadgets+"?watch=true", "")
	defer watch.Body.Close()
	crd := definitions + "/gadgets.example.com"
	api.must("PATCH", crd, "metadata: {labels: {a: b}}")
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}")
	lines := bufio.NewScanner(watch.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), "ADDED") {
		t.Fatalf("a label on the definition ended the watch: %q", lines.Text())
	}
	api.must("PATCH", crd, "spec: {names: {shortNames: [gd]}}")
	if lines.Scan() {
		t.Errorf("the watch goes on: %s", lines.Text())
	}
}

// sharing returns a definition in the group example.com with a short name.
func sharing(kind, short string) string {
	plural := strings.ToLower(kind) + "s"
	return strings.NewReplacer("gadgets", plural, "kind: Gadget", "kind: "+kind+", shortNames: ["+short+"]").Replace(schemaOf("{size: {type: integer}}"))
}

func TestDefinitionsCannotShareAName(t *testing.T) {
	t.Parallel()
	for range 20 {
		server, api := serve(t)
		atOnce := *api
		atOnce.client = &http.Client{Transport: server.Server.RoundTripper(componenttest.Admin())}
		var both sync.WaitGroup
		for _, kind := range []string{"Alpha", "Beta"} {
			both.Go(func() { atOnce.must("POST", definitions, sharing(kind, "same")) })
		}
		both.Wait()
		var established []string
		for _, name := range []string{"alphas", "betas"} {
			crd := api.must("GET", definitions+"/"+name+".example.com", "")
			names, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "acceptedNames", "shortNames")
			code, _ := api.do("GET", "/apis/example.com/v1/"+name, "")
			if served := code == 200; served != (len(names) > 0) {
				t.Errorf("%s has short names %v, and is answered with %d", name, names, code)
			}
			if len(names) > 0 {
				established = append(established, name)
			}
		}
		if len(established) != 1 {
			t.Fatalf("established: %v", established)
		}
	}
}

func TestDefinitionsThatServeNothingCanBeDeleted(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	api.must("POST", definitions, schemaOf("{size: {type: integer}}"))
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}")
	crd := definitions + "/gadgets.example.com"
	api.must("PATCH", crd, "spec: {versions: [{name: v1, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}]}")
	if code, _ := api.do("GET", gadgets, ""); code != 404 {
		t.Errorf("a version that is not served is answered with %d", code)
	}
	api.must("DELETE", crd, "")
	if code, answer := api.do("GET", crd, ""); code != 404 {
		t.Errorf("the definition is still there: %s", answer)
	}
	api.must("POST", definitions, schemaOf("{size: {type: integer}}"))
	equal(t, "objects of the next definition", []string(nil), api.names(gadgets))
}

func TestDefinitionsKeepOlderVersionsReadable(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	api.must("POST", definitions, schemaOf("{size: {type: integer}}"))
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}")
	crd := definitions + "/gadgets.example.com"
	schema := "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}"
	changed := api.must("PATCH", crd, "spec: {versions: [{name: v1, served: true, storage: false, "+schema+"}, {name: v2, served: true, storage: true, "+schema+"}]}")
	stored, _, _ := unstructured.NestedStringSlice(changed.Object, "status", "storedVersions")
	equal(t, "stored versions", []string{"v1", "v2"}, stored)
	for _, version := range []string{"v1", "v2"} {
		found := api.must("GET", strings.Replace(gadgets, "v1", version, 1)+"/a", "")
		equal(t, "apiVersion", "example.com/"+version, found.GetAPIVersion())
		equal(t, "spec", map[string]any{"size": int64(1)}, found.Object["spec"])
	}
	const want = "422 Invalid: CustomResourceDefinition.apiextensions.k8s.io \"gadgets.example.com\" is invalid: status.storedVersions[0]: Invalid value: \"v1\": " +
		"missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
	equal(t, "dropping v1", want, api.refused("PATCH", crd, "spec: {versions: [{name: v2, served: true, storage: true, "+schema+"}]}"))
	api.must("PATCH", strings.Replace(gadgets, "v1", "v2", 1)+"/a", "spec: {size: 2}")
	api.must("PATCH", crd+"/status", "status: {storedVersions: [v2]}")
	api.must("PATCH", crd, "spec: {versions: [{name: v2, served: true, storage: true, "+schema+"}]}")
	found := api.must("GET", strings.Replace(gadgets, "v1", "v2", 1)+"/a", "")
	equal(t, "spec at the end", map[string]any{"size": int64(2)}, found.Object["spec"])
}

func TestDefinitionsAreValidated(t *testing.T) {
	t.Parallel()
	_, api := serve(t)
	const head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.com}\n"
	const spec = head + "spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: gadgets, kind: Gadget}\n"
	for _, body := range []string{
		head,
		head + "spec: {}",
		head + "spec: {versions: [{}]}",
		head + "spec: {versions: null, names: null}",
		head + "spec: [1]",
		spec,
		spec + "  versions: []",
		spec + "  versions: [{name: v1, served: true, storage: true}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: null}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: string}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {}}}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-validations: [{rule: 'self.('}]}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-validations: [{rule: ''}]}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: array, items: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, x == y))'}]}}}}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: integer, default: x}}}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, selectableFields: [{jsonPath: .spec.a}]}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, additionalPrinterColumns: [{name: x, type: odd, jsonPath: '{'}]}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, subresources: {scale: {}}}]",
		spec + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]",
	} {
		answer := api.refused("POST", definitions, body)
		if !strings.HasPrefix(answer, "422 ") && !strings.HasPrefix(answer, "400 ") {
			t.Errorf("%s\nis answered with %s", body, answer)
		}
	}
	equal(t, "definitions", []string(nil), api.names(definitions))
}
