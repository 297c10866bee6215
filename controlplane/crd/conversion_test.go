// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/gc"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/namespace"
)

// converterWebhook converts gadgets in process: spec.size of v1 is spec.width of v2, and v2 has the
// label "form" with that name. It is stored as v1.
type converterWebhook struct {
	mu sync.Mutex
	// calls counts the reviews, objects the objects in them.
	calls, objects int
	// wait is called before a review is answered; nil: nothing is waited for.
	wait func(ctx context.Context) error
	// fault changes the answer; nil: it is right.
	fault func(review *conversionAnswer, body *string) error
}

type conversionAnswer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		UID               string           `json:"uid"`
		DesiredAPIVersion string           `json:"desiredAPIVersion"`
		Objects           []map[string]any `json:"objects"`
	} `json:"request,omitempty"`
	Response struct {
		UID              string           `json:"uid"`
		ConvertedObjects []map[string]any `json:"convertedObjects"`
		Result           any              `json:"result"`
	} `json:"response"`
}

// RoundTrip implements [http.RoundTripper].
func (c *converterWebhook) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	wait := c.wait
	c.mu.Unlock()
	if wait != nil {
		if err := wait(r.Context()); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var review conversionAnswer
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	c.calls, c.objects = c.calls+1, c.objects+len(review.Request.Objects)
	review.Response.UID = review.Request.UID
	review.Response.Result = map[string]string{"status": "Success"}
	for _, obj := range review.Request.Objects {
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, convertGadget(obj, review.Request.DesiredAPIVersion))
	}
	review.Request = nil
	body := ""
	if c.fault != nil {
		if err := c.fault(&review, &body); err != nil {
			return nil, err
		}
	}
	if body == "" {
		encoded, err := json.Marshal(review)
		if err != nil {
			return nil, err
		}
		body = string(encoded)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func convertGadget(obj map[string]any, to string) map[string]any {
	metadata, spec := obj["metadata"].(map[string]any), map[string]any{}
	old, _ := obj["spec"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	for name, value := range old {
		if to == "example.com/v2" && name == "size" {
			name = "width"
		} else if to == "example.com/v1" && name == "width" {
			name = "size"
		}
		spec[name] = value
	}
	if to == "example.com/v2" {
		labels["form"] = "v2"
	} else {
		delete(labels, "form")
	}
	metadata["labels"] = labels
	obj["apiVersion"], obj["spec"] = to, spec
	return obj
}

// set changes the fault, and returns the counts so far, which begin anew.
func (c *converterWebhook) set(fault func(*conversionAnswer, *string) error) (calls, objects int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls, objects = c.calls, c.objects
	c.calls, c.objects, c.fault = 0, 0, fault
	return calls, objects
}

const convertible = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: hook, path: /convert}}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, colour: {type: string}}}, status: {type: object, properties: {ready: {type: integer}}}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.ready}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    selectableFields: [{jsonPath: .spec.size}]
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {width: {type: integer, maximum: 99}, colour: {type: string}}}, status: {type: object, properties: {ready: {type: integer}}}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.width, statusReplicasPath: .status.ready}}
    additionalPrinterColumns: [{name: Width, type: integer, jsonPath: .spec.width}]
    selectableFields: [{jsonPath: .spec.width}]
`

const gadgets2 = "/apis/example.com/v2/namespaces/default/gadgets"

// converting returns a server whose gadgets a webhook converts, with more parts.
func converting(t *testing.T, more ...func(*component.Deps) component.List) (*api, *converterWebhook) {
	t.Helper()
	hook := &converterWebhook{}
	_, api := serveConverting(t, hook, more...)
	api.must("POST", definitions, convertible)
	return api, hook
}

// field returns a field of an object in the answer to a GET.
func (a *api) field(path string, names ...string) any {
	a.tb.Helper()
	var at any = a.must("GET", path, "").Object
	for _, name := range names {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	return at
}

func TestConversionServesEveryVerbInEveryVersion(t *testing.T) {
	t.Parallel()
	api, _ := converting(t)
	created := api.must("POST", gadgets2, "{apiVersion: example.com/v2, kind: Gadget, metadata: {name: a, labels: {own: x}}, spec: {width: 1, unknown: 2}}")
	equal(t, "the created object", "map[width:1]", fmt.Sprint(created.Object["spec"]))
	equal(t, "as it is stored", "1", fmt.Sprint(api.field(gadgets+"/a", "spec", "size")))
	equal(t, "labels of v1", "map[own:x]", fmt.Sprint(api.field(gadgets+"/a", "metadata", "labels")))
	equal(t, "labels of v2", "map[form:v2 own:x]", fmt.Sprint(api.field(gadgets2+"/a", "metadata", "labels")))

	api.must("PATCH", gadgets2+"/a", "{spec: {width: 2}}")
	equal(t, "after a patch", "2", fmt.Sprint(api.field(gadgets+"/a", "spec", "size")))
	updated := api.must("GET", gadgets2+"/a", "")
	updated.Object["spec"] = map[string]any{"width": 3}
	text, err := json.Marshal(updated)
	if err != nil {
		t.Fatal(err)
	}
	api.must("PUT", gadgets2+"/a", string(text))
	equal(t, "after an update", "3", fmt.Sprint(api.field(gadgets+"/a", "spec", "size")))
	api.must("PATCH", gadgets2+"/a/status", "{status: {ready: 1}}")
	equal(t, "after an update of the status", "1", fmt.Sprint(api.field(gadgets+"/a", "status", "ready")))
	api.must("PATCH", gadgets2+"/a/scale", "{spec: {replicas: 4}}")
	equal(t, "after scaling", "4", fmt.Sprint(api.field(gadgets+"/a", "spec", "size")))
	equal(t, "its scale", "4", fmt.Sprint(api.field(gadgets2+"/a/scale", "spec", "replicas")))
	if got := api.refused("PATCH", gadgets2+"/a", "{spec: {width: 100}}"); !strings.Contains(got, "spec.width: Invalid value: 100") {
		t.Errorf("a value that the schema of v2 refuses is answered with %q", got)
	}

	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b}, spec: {size: 7}}")
	for selector, want := range map[string]string{
		"": "[a b]", "?fieldSelector=spec.width%3D7": "[b]", "?labelSelector=form%3Dv2": "[a b]", "?labelSelector=form%21%3Dv2": "[]", "?labelSelector=own": "[a]",
		"?fieldSelector=metadata.name%3Da,spec.width%3D4": "[a]", "?limit=1&labelSelector=form": "[a]",
	} {
		equal(t, "list of v2 with "+selector, want, fmt.Sprint(api.names(gadgets2+selector)))
	}
	equal(t, "list of v1 with a label of v2", "[]", fmt.Sprint(api.names(gadgets+"?labelSelector=form")))
	api.must("DELETE", gadgets2+"?labelSelector=own", "")
	equal(t, "what is left", "[b]", fmt.Sprint(api.names(gadgets)))
	api.must("DELETE", gadgets2+"/b", "")
	equal(t, "what is left", "[]", fmt.Sprint(api.names(gadgets2)))
}

func TestConversionIsBatchedAndRemembered(t *testing.T) {
	t.Parallel()
	api, hook := converting(t)
	const count = 40
	for i := range count {
		api.must("POST", gadgets, fmt.Sprintf("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g%d}, spec: {size: %d}}", i, i))
	}
	for _, selector := range []string{"", "?labelSelector=form", "?fieldSelector=spec.width%3D1", "?limit=10"} {
		api.names(gadgets2 + selector)
	}
	calls, objects := hook.set(nil)
	equal(t, "reviews and objects of several lists", fmt.Sprint(1, count), fmt.Sprint(calls, objects))
	for range 2 {
		api.must("GET", gadgets2+"/g1", "")
	}
	calls, _ = hook.set(nil)
	equal(t, "reviews of two reads of one object", "2", fmt.Sprint(calls))
	api.names(gadgets)
	calls, _ = hook.set(nil)
	equal(t, "reviews of a list of the stored version", "0", fmt.Sprint(calls))
}

func TestConversionAppliesOverVersions(t *testing.T) {
	t.Parallel()
	api, _ := converting(t)
	apply := func(path, manager, body string) (int, string) {
		t.Helper()
		code, answer := api.apply(path+"?fieldManager="+manager, body)
		return code, string(answer)
	}
	const one, two = gadgets + "/a", gadgets2 + "/a"
	if code, answer := apply(one, "first", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}"); code != 201 {
		t.Fatal(code, answer)
	}
	if code, answer := apply(two, "second", "{apiVersion: example.com/v2, kind: Gadget, metadata: {name: a}, spec: {width: 2}}"); code != 409 || !strings.Contains(answer, `conflict with \"first\": .spec.size`) {
		t.Errorf("another value of a field that a manager owns in another version is answered with %d: %s", code, answer)
	}
	if code, answer := apply(two, "second", "{apiVersion: example.com/v2, kind: Gadget, metadata: {name: a}, spec: {colour: red}}"); code != 200 {
		t.Fatal(code, answer)
	}
	// The first manager gives up its field, in the other version.
	if code, answer := apply(two, "first", "{apiVersion: example.com/v2, kind: Gadget, metadata: {name: a}}"); code != 200 {
		t.Fatal(code, answer)
	}
	equal(t, "the spec", "map[colour:red]", fmt.Sprint(api.field(one, "spec")))
	api.must("PATCH", one+"?fieldManager=third", "{spec: {size: 5}}")
	equal(t, "the spec in v2", "map[colour:red width:5]", fmt.Sprint(api.field(two, "spec")))
}

func TestConversionPrintsTheColumnsOfTheVersion(t *testing.T) {
	t.Parallel()
	api, hook := converting(t)
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 7}}")
	for _, path := range []string{gadgets2, gadgets2 + "/a"} {
		hook.set(nil)
		table := api.accept(path, "application/json;as=Table;v=v1;g=meta.k8s.io")
		if !strings.Contains(table, `"name":"Width"`) || !strings.Contains(table, `"cells":["a",7]`) || !strings.Contains(table, `"form":"v2"`) {
			t.Errorf("the table of %s is %s", path, table)
		}
		calls, _ := hook.set(nil)
		equal(t, "reviews of a table", "1", fmt.Sprint(calls))
		if metadata := api.accept(path, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata"+map[bool]string{true: "List"}[path == gadgets2]+";v=v1;g=meta.k8s.io"); !strings.Contains(metadata, "form") {
			t.Errorf("the metadata of %s is %q", path, metadata)
		}
	}
}

func TestConversionFaultsAreAnswered(t *testing.T) {
	t.Parallel()
	api, hook := converting(t)
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a, labels: {x: z}}, spec: {size: 7}}")
	const kind = "example.com/v1, Kind=Gadget"
	object := func(change func(obj, metadata map[string]any)) func(*conversionAnswer, *string) error {
		return func(r *conversionAnswer, _ *string) error {
			obj := r.Response.ConvertedObjects[0]
			metadata, _ := obj["metadata"].(map[string]any)
			change(obj, metadata)
			return nil
		}
	}
	for want, fault := range map[string]func(*conversionAnswer, *string) error{
		"failed: no luck": func(r *conversionAnswer, _ *string) error {
			r.Response.Result = map[string]string{"status": "Failure", "message": "no luck"}
			return nil
		},
		`failed: Post "https://hook.default.svc:443/convert?timeout=30s": connection refused`: func(*conversionAnswer, *string) error {
			return errors.New("connection refused")
		},
		"invalid groupVersion (expected example.com/v2, received example.com/v3)": object(func(obj, _ map[string]any) { obj["apiVersion"] = "example.com/v3" }),
		`metadata.labels: Invalid value: "-"`:                                     object(func(_, m map[string]any) { m["labels"] = map[string]any{"-": "z"} }),
	} {
		hook.set(fault)
		for what, answer := range map[string]string{
			"get": api.refused("GET", gadgets2+"/a", ""), "list": api.refused("GET", gadgets2, ""), "table": api.acceptRefused(gadgets2, "application/json;as=Table;v=v1;g=meta.k8s.io"),
			"selected list": api.refused("GET", gadgets2+"?labelSelector=x", ""), "update": api.refused("PATCH", gadgets2+"/a", "{spec: {width: 8}}"), "watch": api.watchError(gadgets2 + "?watch=true"),
		} {
			begin := "500 : "
			switch what {
			case "get":
				begin = "500 InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: /example.com/gadgets/default/a, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=2: "
			case "update":
				begin += "object not decodable revision=2: "
			}
			if !strings.HasPrefix(answer, begin+"conversion webhook for "+kind+" ") || !strings.Contains(answer, want) {
				t.Errorf("%s is answered with %q, want %q", what, answer, want)
			}
		}
	}
	// What else metadata holds stays as it was.
	hook.set(object(func(_, m map[string]any) {
		m["labels"], m["annotations"] = nil, map[string]any{"note": "x"}
		for _, name := range []string{"creationTimestamp", "resourceVersion", "managedFields", "generation"} {
			delete(m, name)
		}
		m["finalizers"] = []string{"example.com/x"}
	}))
	got, was := api.must("GET", gadgets2+"/a", ""), api.must("GET", gadgets+"/a", "")
	if got.GetResourceVersion() != was.GetResourceVersion() || got.GetGeneration() != 1 || len(got.GetManagedFields()) != 1 || got.GetFinalizers() != nil ||
		got.GetLabels() != nil || got.GetAnnotations()["note"] != "x" {
		t.Errorf("the metadata is %v", got.Object["metadata"])
	}
	hook.set(nil)
	equal(t, "once the webhook is back", "7", fmt.Sprint(api.field(gadgets2+"/a", "spec", "width")))
	equal(t, "nothing was written", "7", fmt.Sprint(api.field(gadgets+"/a", "spec", "size")))
}

func TestConversionIsOfTheWatchedVersion(t *testing.T) {
	t.Parallel()
	api, hook := converting(t)
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}")
	events := api.watch(t, gadgets2+"?watch=true&fieldSelector=spec.width%3D1")
	equal(t, "the first event", "ADDED a 1", events())
	api.must("PATCH", gadgets+"/a", "{spec: {colour: red}}")
	equal(t, "a change", "MODIFIED a 1", events())
	last := api.must("PATCH", gadgets+"/a", "{spec: {size: 2}}")
	equal(t, "what is no longer selected", "DELETED a 1 "+last.GetResourceVersion(), events())
	hook.set(func(*conversionAnswer, *string) error { return errors.New("down") })
	api.must("PATCH", gadgets+"/a", "{spec: {size: 1}}")
	if got := events(); !strings.HasPrefix(got, "ERROR 500 conversion webhook for example.com/v1, Kind=Gadget failed: ") {
		t.Errorf("a webhook that is down gives %q", got)
	}
	equal(t, "the end", "", events())
}

func TestConversionIsNotNeededToDeleteNamespacesAndDefinitions(t *testing.T) {
	t.Parallel()
	api, hook := converting(t, func(d *component.Deps) component.List {
		fetch := func(context.Context, step.Request) (io.ReadCloser, error) { return nil, errors.ErrUnsupported }
		return component.List{
			{Name: "kinds", Resources: core.Resources()},
			component.Controller(namespace.New(d.Catalog, step.LifeOf, fetch)),
			gc.New(d.Catalog, step.LifeOf, fetch).Component(),
		}
	})
	api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: gone}}")
	api.must("POST", "/apis/example.com/v1/namespaces/gone/gadgets", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}")
	owner := api.must("POST", "/api/v1/namespaces/default/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+string(owner.GetUID())+"}]}}")
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b}}")
	hook.set(func(*conversionAnswer, *string) error { return errors.New("down") })
	api.must("DELETE", "/api/v1/namespaces/gone", "")
	api.must("DELETE", "/api/v1/namespaces/default/configmaps/owner", "")
	if code, _ := api.do("GET", "/api/v1/namespaces/gone", ""); code != 404 {
		t.Errorf("the namespace is answered with %d", code)
	}
	equal(t, "after the owner is gone", "[b]", fmt.Sprint(api.names(gadgets)))
	api.must("DELETE", definitions+"/gadgets.example.com", "")
	if code, _ := api.do("GET", definitions+"/gadgets.example.com", ""); code != 404 {
		t.Errorf("the definition is answered with %d", code)
	}
	if calls, _ := hook.set(nil); calls != 0 {
		t.Errorf("the webhook was called %d times", calls)
	}
}

func TestConversionFollowsARedefinitionDuringARequest(t *testing.T) {
	t.Parallel()
	api, hook := converting(t)
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}")
	var once sync.Once
	redefined := make(chan struct{})
	hook.set(func(*conversionAnswer, *string) error {
		once.Do(func() {
			go func() {
				defer close(redefined)
				api.must("PATCH", definitions+"/gadgets.example.com", `{spec: {conversion: {strategy: None, webhook: null}}}`)
			}()
			<-redefined
		})
		return nil
	})
	// The write was converted by a definition that is no longer the stored one: it is answered
	// anew, and loses what only the webhook would have renamed.
	api.must("PATCH", gadgets2+"/a", "{spec: {width: 5}}")
	equal(t, "the stored object", "map[]", fmt.Sprint(api.field(gadgets+"/a", "spec")))
}

// TestConversionCallsEndWithTheirRequest cancels an apply while one of its reviews waits: those
// for the object, and those for the managedFields in another version.
func TestConversionCallsEndWithTheirRequest(t *testing.T) {
	t.Parallel()
	api, hook := converting(t)
	if code, answer := api.apply(gadgets+"/a?fieldManager=first", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}"); code != http.StatusCreated {
		t.Fatal(code, string(answer))
	}
	const dry, body = gadgets2 + "/a?fieldManager=second&dryRun=All", "{apiVersion: example.com/v2, kind: Gadget, metadata: {name: a}, spec: {colour: red}}"
	hook.set(nil)
	if code, answer := api.apply(dry, body); code != http.StatusOK {
		t.Fatal(code, string(answer))
	}
	reviews, _ := hook.set(nil)
	if reviews < 3 {
		t.Fatalf("%d reviews: the managedFields are not converted", reviews)
	}
	for last := range reviews {
		ctx, cancel := context.WithCancel(t.Context())
		ended, seen := make(chan error, 1), 0
		hook.waits(func(review context.Context) error {
			if seen++; seen <= last { // one request sends its reviews one after the other
				return nil
			}
			cancel()
			<-review.Done()
			ended <- review.Err()
			return review.Err()
		})
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, api.host+dry, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
		if response, err := api.client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				t.Errorf("review %d: the cancelled request is answered %s", last, response.Status)
			}
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("review %d ends with %v", last, err)
		}
	}
}

// waits has reviews wait before they are answered.
func (c *converterWebhook) waits(wait func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wait = wait
}

// apply sends an applied configuration.
func (a *api) apply(path, body string) (int, []byte) {
	a.tb.Helper()
	return a.send("PATCH", path, body, map[string]string{"Content-Type": "application/apply-patch+yaml"})
}

// accept returns the answer to a GET in a representation.
func (a *api) accept(path, representation string) string {
	a.tb.Helper()
	code, body := a.send("GET", path, "", map[string]string{"Accept": representation})
	if code != 200 {
		a.tb.Fatalf("GET %s: %d %s", path, code, body)
	}
	return string(body)
}

// acceptRefused is [api.refused] of a GET in a representation.
func (a *api) acceptRefused(path, representation string) string {
	a.tb.Helper()
	code, body := a.send("GET", path, "", map[string]string{"Accept": representation})
	return refusal(code, body)
}

// send sends a request with headers and returns the answer.
func (a *api) send(method, path, body string, header map[string]string) (int, []byte) {
	a.tb.Helper()
	request, err := http.NewRequestWithContext(a.tb.Context(), method, a.host+path, strings.NewReader(body))
	if err != nil {
		a.tb.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.tb.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.tb.Fatal(err)
	}
	return response.StatusCode, text
}

// watchError returns the first event of a watch, which has to be an error, as [api.refused] does.
func (a *api) watchError(path string) string {
	a.tb.Helper()
	response := a.open(a.tb.Context(), "GET", path, "")
	defer response.Body.Close()
	var event struct {
		Type   string
		Object struct {
			Code            int
			Reason, Message string
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&event); err != nil || event.Type != "ERROR" {
		a.tb.Fatalf("the first event of %s is %+v, %v", path, event, err)
	}
	return fmt.Sprintf("%d %s: %s", event.Object.Code, event.Object.Reason, event.Object.Message)
}

// watch opens a watch of gadgets and returns what reads the next event; "" is the end.
func (a *api) watch(t *testing.T, path string) func() string {
	t.Helper()
	response := a.open(t.Context(), "GET", path, "")
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return func() string {
		if !lines.Scan() {
			return ""
		}
		var event struct {
			Type   string
			Object struct {
				Code     int
				Message  string
				Metadata struct{ Name, ResourceVersion string }
				Spec     struct{ Width int }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		o := event.Object
		switch event.Type {
		case "ERROR":
			return fmt.Sprint("ERROR ", o.Code, " ", o.Message)
		case "DELETED":
			return fmt.Sprint(event.Type, " ", o.Metadata.Name, " ", o.Spec.Width, " ", o.Metadata.ResourceVersion)
		}
		return fmt.Sprint(event.Type, " ", o.Metadata.Name, " ", o.Spec.Width)
	}
}
