// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

const (
	mutatingPath  = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	validatePath  = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	mutatingKind  = "MutatingWebhookConfiguration"
	validatedKind = "ValidatingWebhookConfiguration"
)

// hooks are webhooks in this process, by the path of their Service.
type hooks struct {
	mu sync.Mutex
	of map[string]func(*http.Request, *admissionv1.AdmissionRequest) (any, error)
}

// on has a webhook answer reviews at a path: with a response, whose uid is set, or with
// bytes.
func (h *hooks) on(path string, answer func(*http.Request, *admissionv1.AdmissionRequest) (any, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[path] = answer
}

// RoundTrip implements http.RoundTripper.
func (h *hooks) RoundTrip(r *http.Request) (*http.Response, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	h.mu.Lock()
	answer := h.of[r.URL.Path]
	h.mu.Unlock()
	if answer == nil {
		return nil, errors.New("nothing is here")
	}
	a, err := answer(r, review.Request)
	if err != nil {
		return nil, err
	}
	body, ok := a.([]byte)
	if response, is := a.(*admissionv1.AdmissionResponse); is {
		if response.UID == "" {
			response.UID = review.Request.UID
		}
		review.Request, review.Response = nil, response
		if body, err = json.Marshal(review); err != nil {
			return nil, err
		}
	} else if !ok {
		return nil, fmt.Errorf("an answer of type %T", a)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// hookedPlane returns a plane whose Service hooks in the namespace default is in this
// process.
func hookedPlane(tb testing.TB) (*controlplane.Plane, *api, *hooks) {
	tb.Helper()
	return hookedPlaneOf(tb, controlplane.Options{ManualControllers: true})
}

// hookedPlaneOf is the same with options.
func hookedPlaneOf(tb testing.TB, o controlplane.Options) (*controlplane.Plane, *api, *hooks) {
	tb.Helper()
	h := &hooks{of: map[string]func(*http.Request, *admissionv1.AdmissionRequest) (any, error){}}
	o.Webhooks = webhookclient.Options{
		Resolve: func(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
			return webhookclient.Backend{Transport: h}, s == webhookclient.Service{Namespace: "default", Name: "hooks", Port: 443}
		},
	}
	plane, api := planeOf(tb, o)
	return plane, api, h
}

// configuration is one with a webhook at the path of its name. more are fields of the
// webhook, in YAML.
func configuration(kind, name, rules string, more ...string) string {
	out := fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s}
webhooks:
- name: %s.example.com
  clientConfig: {service: {namespace: default, name: hooks, path: /%s}}
  rules: [%s]
  sideEffects: None
  admissionReviewVersions: [v1]
`, kind, name, name, name, rules)
	for _, m := range more {
		out += "  " + m + "\n"
	}
	return out
}

const (
	onConfigMaps = `{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}`
	onEverything = `{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}`
)

func labelled(name string, labels ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {%s}}\ndata: {a: b}\n", name, strings.Join(labels, ", "))
}

func allow(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
	return &admissionv1.AdmissionResponse{Allowed: true}, nil
}

// patching allows with a patch.
func patching(patch string) func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
	return func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
		t := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: &t}, nil
	}
}

func TestWebhookConfigurationsAreInForceWithTheAnswer(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	h.on("/refuse", func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
		return &admissionv1.AdmissionResponse{}, nil
	})
	for kind, path := range map[string]string{mutatingKind: mutatingPath, validatedKind: validatePath} {
		for i := range 3 {
			api.must("POST", configMaps, labelled(fmt.Sprintf("before-%d-%s", i, strings.ToLower(kind))))
			api.must("POST", path, configuration(kind, "refuse", onConfigMaps))
			if got := api.refused("POST", configMaps, labelled("refused")); got != `400 : admission webhook "refuse.example.com" denied the request without explanation` {
				t.Errorf("%s: %s", kind, got)
			}
			api.must("DELETE", path+"/refuse", "")
		}
		api.must("POST", configMaps, labelled("after-"+strings.ToLower(kind)))
	}
}

// TestWebhookThatHangsStallsOnlyTheWritesItGuards has a write wait for a webhook while
// others go on: of users, of controllers, and of the configuration itself.
// Nothing is sent: the address is refused before the connection.
func TestListenBeyondLoopbackKeepsWebhooksFromMetadataAddresses(t *testing.T) {
	t.Parallel()
	plane, api := planeOf(t, controlplane.Options{Listen: "0.0.0.0:0", ManualControllers: true})
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"ipv4": "169.254.169.254", "mapped": "[::ffff:169.254.169.254]"} {
		byURL := strings.Replace(configuration(validatedKind, name, onConfigMaps),
			"service: {namespace: default, name: hooks, path: /"+name+"}", `url: "https://`+address+`/latest/meta-data"`, 1)
		api.must("POST", validatePath, byURL)
		answer := api.refused("POST", configMaps, labelled("x"))
		if want := "this server may not connect to 169.254.169.254:443"; !strings.Contains(answer, want) {
			t.Errorf("%s: the write is answered with %q, want %q in it", name, answer, want)
		}
		api.must("DELETE", validatePath+"/"+name, "")
	}
}

func TestWebhookThatHangsStallsOnlyTheWritesItGuards(t *testing.T) {
	t.Parallel()
	plane, api, h := hookedPlane(t)
	called, release := make(chan struct{}), make(chan struct{})
	h.on("/hangs", func(r *http.Request, _ *admissionv1.AdmissionRequest) (any, error) {
		close(called)
		select {
		case <-release:
			return &admissionv1.AdmissionResponse{Allowed: true}, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: leaving}}")
	owner := api.must("POST", "/api/v1/namespaces/leaving/secrets", "{apiVersion: v1, kind: Secret, metadata: {name: owner}}")
	api.must("POST", "/api/v1/namespaces/default/secrets", fmt.Sprintf(
		"{apiVersion: v1, kind: Secret, metadata: {name: orphan, ownerReferences: [{apiVersion: v1, kind: Secret, name: gone, uid: %s}]}}", owner.GetUID()))
	const guarded = `{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}`
	api.must("POST", validatePath, configuration(validatedKind, "hangs", guarded,
		"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}", "timeoutSeconds: 30"))
	held := make(chan int, 1)
	go func() {
		code, _ := api.do("POST", configMaps, labelled("held"))
		held <- code
	}()
	<-called
	api.must("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}}")
	api.must("POST", "/api/v1/namespaces/leaving/configmaps", labelled("of-another-namespace"))
	api.must("DELETE", "/api/v1/namespaces/leaving", "")
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/namespaces/leaving", "/api/v1/namespaces/default/secrets/orphan"} {
		if code, answer := api.do("GET", path, ""); code != http.StatusNotFound {
			t.Errorf("%s is left: %s", path, answer)
		}
	}
	api.must("DELETE", validatePath+"/hangs", "") // the way out
	api.must("POST", configMaps, labelled("not-held"))
	select {
	case code := <-held:
		t.Errorf("the write that the webhook guards is answered %d before it", code)
	default:
	}
	close(release)
	if code := <-held; code != http.StatusCreated {
		t.Errorf("the write that waited is answered %d", code)
	}
}

func TestWebhookThatDeniesEverythingHasAWayOut(t *testing.T) {
	t.Parallel()
	plane, api, h := hookedPlane(t)
	h.on("/refuse", func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
		return &admissionv1.AdmissionResponse{}, nil
	})
	api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: leaving}}")
	api.must("POST", "/api/v1/namespaces/leaving/configmaps", labelled("kept"))
	api.must("DELETE", "/api/v1/namespaces/leaving", "")
	api.must("POST", mutatingPath, configuration(mutatingKind, "refuse", onEverything))
	api.must("POST", validatePath, configuration(validatedKind, "refuse", onEverything))
	for _, r := range [][3]string{
		{"POST", configMaps, labelled("x")}, {"DELETE", "/api/v1/namespaces/leaving/configmaps/kept", ""},
		{"PATCH", "/api/v1/namespaces/default", "metadata: {labels: {a: b}}"}, {"DELETE", "/api/v1/namespaces/leaving/configmaps", ""},
	} {
		if got := api.refused(r[0], r[1], r[2]); !strings.Contains(got, "denied the request") {
			t.Errorf("%s %s: %s", r[0], r[1], got)
		}
	}
	if _, err := plane.Step(t.Context()); err != nil {
		t.Error(err)
	}
	api.must("GET", "/api/v1/namespaces/leaving", "")
	api.must("DELETE", mutatingPath+"/refuse", "")
	api.must("DELETE", validatePath+"/refuse", "")
	api.must("POST", configMaps, labelled("x"))
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if code, answer := api.do("GET", "/api/v1/namespaces/leaving", ""); code != http.StatusNotFound {
		t.Errorf("the namespace is left: %s", answer)
	}
}

// TestWebhookMayWriteWhatItIsAskedAbout has a webhook change the same object, its
// namespace and a quota of it before it answers.
func TestWebhookMayWriteWhatItIsAskedAbout(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	api.must("POST", "/api/v1/namespaces/default/resourcequotas", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {configmaps: 10}}}")
	api.must("POST", configMaps, labelled("x"))
	var calls atomic.Int32
	write := func(r *http.Request, _ *admissionv1.AdmissionRequest) (any, error) {
		if n := calls.Add(1); n == 1 {
			api.must("PATCH", configMaps+"/x", "data: {webhook: "+r.URL.Path+"}") // comes here again
			api.must("PATCH", "/api/v1/namespaces/default", "metadata: {labels: {webhook: here}}")
			api.must("PATCH", "/api/v1/namespaces/default/resourcequotas/q", "spec: {hard: {configmaps: '20'}}")
		}
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	for _, path := range []string{"/mutates", "/validates"} {
		h.on(path, write)
	}
	for name, of := range map[string][2]string{"mutates": {mutatingPath, mutatingKind}, "validates": {validatePath, validatedKind}} {
		calls.Store(0)
		api.must("POST", of[0], configuration(of[1], name, onConfigMaps))
		got := api.must("PATCH", configMaps+"/x", "data: {by-"+name+": user}")
		if data := fmt.Sprint(got.Object["data"]); !strings.Contains(data, "webhook:/"+name) || !strings.Contains(data, "by-"+name) {
			t.Errorf("%s: the object is %s", name, data)
		}
		if n := calls.Load(); n != 3 { // the write, that of the webhook, and the write on top of that
			t.Errorf("%s: %d calls", name, n)
		}
		api.must("DELETE", of[0]+"/"+name, "")
	}
}

func TestMutatingWebhooksThatUndoOneAnotherEnd(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	var calls atomic.Int32
	for _, name := range []string{"a", "b", "c"} {
		patch := patching(fmt.Sprintf(`[{"op":"add","path":"/data/last","value":%q}]`, name))
		h.on("/"+name, func(r *http.Request, a *admissionv1.AdmissionRequest) (any, error) {
			calls.Add(1)
			return patch(r, a)
		})
		api.must("POST", mutatingPath, configuration(mutatingKind, name, onConfigMaps, "reinvocationPolicy: IfNeeded"))
	}
	got := api.must("POST", configMaps, labelled("x"))
	if data := fmt.Sprint(got.Object["data"]); calls.Load() > 6 || !strings.Contains(data, "last:") {
		t.Errorf("%d calls for %s", calls.Load(), data)
	}
}

// TestWebhookAnswersAreBounded gives answers that would cost much more than they are long.
// The members of a custom resource are raw until a webhook, an expression or a plugin needs
// them: what is remembered for the second round must not depend on it.
func TestMutatingWebhooksAreCalledAgainForCustomResources(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	var calls atomic.Int32
	h.on("/again", func(r *http.Request, a *admissionv1.AdmissionRequest) (any, error) {
		calls.Add(1)
		return allow(r, a)
	})
	h.on("/sets", patching(`[{"op":"add","path":"/metadata/labels","value":{"set":"yes"}}]`))
	const onCronTabs = `{operations: ["*"], apiGroups: [stable.example.com], apiVersions: [v1], resources: [crontabs]}`
	api.must("POST", mutatingPath, configuration(mutatingKind, "again", onCronTabs, "reinvocationPolicy: IfNeeded"))
	api.must("POST", cronTabs, cronTab("alone"))
	if got := calls.Load(); got != 1 {
		t.Errorf("a webhook is called %d times where nothing changes after it, want 1", got)
	}
	api.must("POST", mutatingPath, configuration(mutatingKind, "sets", onCronTabs))
	created := api.must("POST", cronTabs, cronTab("changed"))
	if got := calls.Load(); got != 3 {
		t.Errorf("%d calls, want 2 more: another webhook has changed the object", got)
	}
	if body := fmt.Sprint(created); !strings.Contains(body, "cronSpec") {
		t.Errorf("the members of the object are lost: %s", body)
	}
}

func TestWebhookAnswersAreBounded(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	api.must("POST", mutatingPath, configuration(mutatingKind, "much", onConfigMaps, "timeoutSeconds: 30"))
	var copies, operations, warnings []string
	for i := range 100_000 {
		warnings = append(warnings, fmt.Sprintf("this is warning %d", i))
	}
	for range 40 {
		copies = append(copies, `{"op":"copy","from":"/data","path":"/data/x"}`, `{"op":"copy","from":"/data","path":"/data/y"}`)
	}
	for range 20_000 {
		operations = append(operations, `{"op":"replace","path":"/data/a","value":"x"}`)
	}
	for name, one := range map[string]struct {
		answer func(*http.Request, *admissionv1.AdmissionRequest) (any, error)
		want   string
	}{
		"copies that double": {patching("[" + strings.Join(copies, ",") + "]"), "500 InternalError"},
		"many operations":    {patching("[" + strings.Join(operations, ",") + "]"), "500 InternalError"},
		"depth":              {patching(`[{"op":"add","path":"/data/x","value":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}]`), "500 InternalError"},
		"a long answer": {func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
			return bytes.Repeat([]byte(" "), 64<<20), nil
		}, "500 InternalError"},
	} {
		h.on("/much", one.answer)
		if got := api.refused("POST", configMaps, labelled("x")); !strings.HasPrefix(got, one.want) || len(got) > 4096 {
			t.Errorf("%s: %.300s", name, got)
		}
	}
	h.on("/much", func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}, nil
	})
	response := api.open(t.Context(), "POST", configMaps, labelled("warned"))
	defer response.Body.Close()
	size := 0
	for _, w := range response.Header["Warning"] {
		size += len(w)
	}
	if response.StatusCode != http.StatusCreated || size == 0 || size > 8192 {
		t.Errorf("%d with %d bytes of warnings", response.StatusCode, size)
	}
}

// TestWebhookConfigurationsChangeUnderWrites changes configurations while objects are
// written: each write sees all hooks of one moment or those of another.
func TestWebhookConfigurationsChangeUnderWrites(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	h.on("/label", patching(`[{"op":"add","path":"/metadata/labels/hook","value":"x"}]`))
	h.on("/check", allow)
	var writers sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				name := fmt.Sprintf("w%d-%d", w, i)
				if code, answer := api.do("POST", configMaps, labelled(name, "own: label")); code != http.StatusCreated {
					t.Errorf("%s: %d %s", name, code, answer)
				}
			}
		})
	}
	for range 25 {
		api.must("POST", mutatingPath, configuration(mutatingKind, "label", onConfigMaps))
		api.must("POST", validatePath, configuration(validatedKind, "check", onConfigMaps))
		api.must("DELETE", mutatingPath+"/label", "")
		api.must("DELETE", validatePath+"/check", "")
	}
	close(done)
	writers.Wait()
}

func TestWebhooksAreMeasuredUnderTheNamesOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	_, api, h := hookedPlane(t)
	h.on("/ok", allow)
	h.on("/refuse", func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
		return &admissionv1.AdmissionResponse{}, nil
	})
	const create = `{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}`
	api.must("POST", mutatingPath, configuration(mutatingKind, "ok", create))
	api.must("POST", mutatingPath, configuration(mutatingKind, "open", create, "failurePolicy: Ignore"))
	api.must("POST", validatePath, configuration(validatedKind, "refuse", create, `matchConditions: [{name: c, expression: "object.metadata.name == 'refused'"}]`))
	api.must("POST", configMaps, labelled("x"))
	api.refused("POST", configMaps, labelled("refused"))
	_, metrics := api.do("GET", "/metrics", "")
	for _, want := range []string{
		`apiserver_admission_webhook_request_total{code="200",name="ok.example.com",operation="CREATE",rejected="false",type="admit"} 2`,
		`apiserver_admission_webhook_request_total{code="400",name="refuse.example.com",operation="CREATE",rejected="true",type="validating"} 1`,
		`apiserver_admission_webhook_fail_open_count{name="open.example.com",type="admit"} 2`,
		`apiserver_admission_webhook_rejection_count{error_type="no_error",name="refuse.example.com",operation="CREATE",rejection_code="400",type="validating"} 1`,
		`apiserver_admission_webhook_admission_duration_seconds_count{name="ok.example.com",operation="CREATE",rejected="false",type="admit"} 2`,
		`apiserver_admission_match_condition_evaluation_seconds_count{kind="webhook",name="refuse.example.com",operation="CREATE",type="validating"} 1`,
		`apiserver_admission_match_condition_exclusions_total{kind="webhook",name="refuse.example.com",operation="CREATE",type="validate"} 1`,
		`apiserver_admission_controller_admission_duration_seconds_count{name="ValidatingAdmissionWebhook",operation="CREATE",rejected="true",type="validate"} 1`,
		`apiserver_admission_controller_admission_duration_seconds_bucket{name="MutatingAdmissionWebhook",operation="CREATE",rejected="false",type="admit",le="2.5"}`,
		`apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="true",type="validate"} 1`,
		`apiserver_admission_step_admission_duration_seconds_bucket{operation="CREATE",rejected="false",type="admit",le="0.005"}`,
		`apiserver_admission_step_admission_duration_seconds_summary{operation="CREATE",rejected="false",type="validate",quantile="0.99"}`,
	} {
		if !strings.Contains(string(metrics), "\n"+want) {
			t.Errorf("there is no %s", want)
		}
	}
	// As in kube-apiserver, a plugin is not measured in a pass that it does not have.
	for _, not := range []string{`name="ValidatingAdmissionWebhook",operation="CREATE",rejected="false",type="admit"`, `name="MutatingAdmissionWebhook",operation="CREATE",rejected="false",type="validate"`} {
		if strings.Contains(string(metrics), not) {
			t.Errorf("a plugin is measured in a pass that it does not have: %s", not)
		}
	}
}
