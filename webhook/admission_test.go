// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook"
)

// patched applies the patch of a response.
func patched(t *testing.T, object string, r *admissionv1.AdmissionResponse) string {
	t.Helper()
	if r.PatchType == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("no JSON patch: %+v", r)
	}
	patch, err := evanphx.DecodePatch(r.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("%s on %s: %v", r.Patch, object, err)
	}
	return string(out)
}

func sameJSON(t *testing.T, got, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(a, b)
}

func TestDefaulterChangesWhatItSetsAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, object, want string
		change             func(w *widget)
	}{
		{"nothing", `{"spec":{"size":0,"new":1}}`, "", func(*widget) {}},
		{"a field", `{"spec":{"new":1}}`, `{"spec":{"new":1,"size":3}}`, func(w *widget) { w.Spec.Size = 3 }},
		{"a field that was sent as zero", `{"spec":{"size":0}}`, `{"spec":{"size":3}}`, func(w *widget) { w.Spec.Size = 3 }},
		{"back to zero", `{"spec":{"size":3,"new":1}}`, `{"spec":{"new":1}}`, func(w *widget) { w.Spec.Size = 0 }},
		{"labels where there are none", `{"metadata":{"name":"x"},"spec":{}}`, `{"metadata":{"name":"x","labels":{"a/b":"c"}},"spec":{}}`, func(w *widget) { w.Labels = map[string]string{"a/b": "c"} }},
		{"a parent that is absent", `{}`, `{"spec":{"names":["a"]}}`, func(w *widget) { w.Spec.Names = []string{"a"} }},
		{"the status", `{"spec":{}}`, `{"spec":{},"status":{"ready":true}}`, func(w *widget) { w.Status.Ready = true }},
		{"an item of a list", `{"spec":{"parts":[{"name":"a","new":1},{"name":"b","new":2}]}}`, `{"spec":{"parts":[{"name":"z"},{"name":"a","new":1},{"name":"b","new":2,"count":4}]}}`, func(w *widget) {
			w.Spec.Parts[1].Count = 4
			w.Spec.Parts = append([]part{{Name: "z"}}, w.Spec.Parts...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWeb(t, nil)
			err := webhook.AddDefaulter(w, defaulter(func(_ context.Context, w *widget) error { c.change(w); return nil }))
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				r := ask(t, w, mutatePath, request(op, c.object, c.object))
				if !r.Allowed {
					t.Fatalf("%s: denied: %+v", op, r.Result)
				}
				if c.want == "" {
					if r.Patch != nil || r.PatchType != nil {
						t.Errorf("%s: a patch of nothing: %s", op, r.Patch)
					}
					continue
				}
				got := patched(t, c.object, r)
				if !sameJSON(t, got, c.want) {
					t.Errorf("%s: %s, want %s", op, got, c.want)
				}
				if again := ask(t, w, mutatePath, request(op, got, "")); c.name == "a field" && again.Patch != nil {
					t.Errorf("%s: a second call changes it again: %s", op, again.Patch)
				}
			}
			if r := ask(t, w, mutatePath, request(admissionv1.Delete, "", c.object)); !r.Allowed || r.Patch != nil {
				t.Errorf("a deletion: %+v", r)
			}
		})
	}
}

func TestValidatorIsCalledForItsOperation(t *testing.T) {
	t.Parallel()
	w := newWeb(t, nil)
	err := webhook.AddValidator(w, validator(func(ctx context.Context, op string, old, obj *widget) (webhook.Warnings, error) {
		r, ok := webhook.RequestFromContext(ctx)
		if !ok || r.UserInfo.Username != "alice" {
			t.Error("the context has no request")
		}
		said := fmt.Sprint(op, " ", obj.Spec.Size, " dry=", r.IsDryRun())
		if old != nil {
			said += fmt.Sprint(" before ", old.Spec.Size)
		}
		if obj.Spec.Size > 8 {
			return webhook.Warnings{said}, errTest
		}
		return webhook.Warnings{said}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	dry := true
	for _, c := range []struct {
		op          admissionv1.Operation
		object, old string
		dry         *bool
		allowed     bool
		warning     string
	}{
		{admissionv1.Create, `{"spec":{"size":1}}`, "", nil, true, "create 1 dry=false"},
		{admissionv1.Create, `{"spec":{"size":9}}`, "", &dry, false, "create 9 dry=true"},
		{admissionv1.Update, `{"spec":{"size":2}}`, `{"spec":{"size":9}}`, nil, true, "update 2 dry=false before 9"},
		{admissionv1.Delete, "", `{"spec":{"size":9}}`, nil, false, "delete 9 dry=false"},
	} {
		r := request(c.op, c.object, c.old)
		r.DryRun = c.dry
		got := ask(t, w, validatePath, r)
		if got.Allowed != c.allowed || len(got.Warnings) != 1 || got.Warnings[0] != c.warning || got.Patch != nil {
			t.Errorf("%s %s: %+v", c.op, c.object, got)
		}
		if !c.allowed && (got.Result == nil || got.Result.Code != http.StatusForbidden || got.Result.Reason != metav1.StatusReasonForbidden || got.Result.Message != errTest.Error()) {
			t.Errorf("%s: denied with %+v", c.op, got.Result)
		}
	}
	if r := ask(t, w, validatePath, request(admissionv1.Connect, `{"kind":"WidgetOptions"}`, "")); !r.Allowed {
		t.Errorf("CONNECT: %+v", r)
	}
}

func TestErrorsOfTheAPIMachineryKeepTheirStatus(t *testing.T) {
	t.Parallel()
	w := newWeb(t, nil)
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "mine", field.ErrorList{field.Required(field.NewPath("spec", "size"), "say how large")})
	for path, err := range map[string]error{"/invalid": invalid, "/wrapped": fmt.Errorf("validate: %w", invalid)} {
		err := webhook.AddValidator(w, validator(func(context.Context, string, *widget, *widget) (webhook.Warnings, error) { return nil, err }), webhook.Path(path))
		if err != nil {
			t.Fatal(err)
		}
		r := ask(t, w, path, request(admissionv1.Create, plain, ""))
		if r.Allowed || r.Result.Code != http.StatusUnprocessableEntity || r.Result.Reason != metav1.StatusReasonInvalid || len(r.Result.Details.Causes) != 1 {
			t.Errorf("%s: %+v", path, r.Result)
		}
	}
}

func TestPanicsDenyTheRequestWithAReason(t *testing.T) {
	t.Parallel()
	recorder := trace.NewRecorder(trace.Options{})
	w := newWeb(t, func(o *webhook.Options) { o.Trace = recorder })
	err := webhook.AddDefaulter(w, defaulter(func(_ context.Context, w *widget) error {
		w.Labels["a"] = "b" // of a nil map
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := ask(t, w, mutatePath, request(admissionv1.Create, plain, ""))
	if r.Allowed || r.Result.Code != http.StatusInternalServerError || !strings.Contains(r.Result.Message, "panicked: assignment to entry in nil map") || !strings.Contains(r.Result.Message, mutatePath) {
		t.Errorf("%+v", r.Result)
	}
	if log := w.log.String(); !strings.Contains(log, "admission_test.go") {
		t.Errorf("the log has no stack: %s", log)
	}
	for record := range recorder.Records() {
		if record.Outcome != trace.Panicked {
			t.Errorf("recorded as %v", record)
		}
	}
}

func TestRequestsThatAreNoReviewsAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	w := newWeb(t, nil)
	if err := webhook.AddDefaulter(w, defaulter(func(context.Context, *widget) error { return nil })); err != nil {
		t.Fatal(err)
	}
	send := func(method, path, media, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		return rec
	}
	const asJSON = "application/json"
	for _, c := range []struct {
		name, method, path, media, body string
		status                          int
		says                            string
	}{
		{"another path", "POST", "/mutate", asJSON, "{}", 404, "the operator serves " + mutatePath},
		{"GET", "GET", mutatePath, asJSON, "", 405, "POST"},
		{"another media type", "POST", mutatePath, "application/yaml", "{}", 415, "application/json"},
		{"no media type", "POST", mutatePath, "", "{}", 415, "application/json"},
		{"no JSON", "POST", mutatePath, asJSON, "{", 400, "read the review"},
		{"an empty body", "POST", mutatePath, asJSON, "", 400, "read the review"},
		{"v1beta1", "POST", mutatePath, asJSON, `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}`, 400, "answers admission.k8s.io/v1 AdmissionReview, and was sent a admission.k8s.io/v1beta1"},
		{"another review", "POST", mutatePath, asJSON, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, 400, "ConversionReview"},
		{"no request", "POST", mutatePath, asJSON, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "no request"},
		{"too much", "POST", mutatePath, asJSON, `{"a":"` + strings.Repeat("x", 7<<20) + `"}`, 413, "more than 7340032 bytes"},
		{"deep nesting", "POST", mutatePath, asJSON, strings.Repeat("[", 1<<20), 400, "read the review"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := send(c.method, c.path, c.media, c.body)
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.says) {
				t.Errorf("%d %.300s", got.Code, got.Body)
			}
		})
	}
	for name, r := range map[string]*admissionv1.AdmissionRequest{
		"another kind": func() *admissionv1.AdmissionRequest {
			r := request(admissionv1.Create, plain, "")
			r.Kind.Version = "v1"
			return r
		}(),
		"no object":    request(admissionv1.Create, "", ""),
		"not its type": request(admissionv1.Create, `{"spec":{"size":"large"}}`, ""),
	} {
		if got := ask(t, w, mutatePath, r); got.Allowed || got.Result.Code != http.StatusBadRequest || got.Result.Message == "" {
			t.Errorf("%s: %+v", name, got.Result)
		}
	}
}

func TestHandlerAnswersForAnyKindAndSubresource(t *testing.T) {
	t.Parallel()
	w := newWeb(t, nil)
	err := webhook.AddHandler(w, "/scale", webhook.HandlerFunc(func(_ context.Context, r *webhook.Request) webhook.Response {
		before, obj := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if err := r.Decode(before); err != nil {
			return webhook.Errored(err)
		}
		before.DeepCopyInto(obj)
		if err := r.DecodeOld(&unstructured.Unstructured{}); err == nil {
			return webhook.Denied("there is nothing before a creation")
		}
		_ = unstructured.SetNestedField(obj.Object, int64(5), "spec", "replicas")
		response := webhook.Patched(r, before, obj)
		response.AuditAnnotations = map[string]string{"who": r.SubResource}
		return response
	}))
	if err != nil {
		t.Fatal(err)
	}
	scale := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"x"},"spec":{"replicas":9}}`
	r := request(admissionv1.Update, scale, "")
	r.SubResource = "scale"
	got := ask(t, w, "/scale", r)
	if want := strings.Replace(scale, "9", "5", 1); !got.Allowed || !sameJSON(t, patched(t, scale, got), want) || got.AuditAnnotations["who"] != "scale" {
		t.Errorf("%+v %s", got, got.Patch)
	}
}

func TestADenialWithoutAReasonIsGivenOne(t *testing.T) {
	t.Parallel()
	w := newWeb(t, nil)
	if err := webhook.AddHandler(w, "/no", webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Response{} })); err != nil {
		t.Fatal(err)
	}
	if r := ask(t, w, "/no", request(admissionv1.Create, plain, "")); r.Allowed || r.Result == nil || r.Result.Message == "" {
		t.Errorf("%+v", r)
	}
}

func TestAddRefusesMistakes(t *testing.T) {
	t.Parallel()
	allow := webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })
	nothing := defaulter(func(context.Context, *widget) error { return nil })
	w := newWeb(t, nil)
	unknown := web{webhook.New(webhook.Options{Scheme: func() *runtime.Scheme { s, _ := client.NewScheme(); return s }()}), nil}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"a relative path":               {webhook.AddHandler(w, "mutate", allow), "must begin with a slash"},
		"a path twice":                  {func() error { _ = webhook.AddHandler(w, "/x", allow); return webhook.AddHandler(w, "/x", allow) }(), "webhook.Path"},
		"the path of conversions":       {webhook.AddHandler(w, "/convert", allow), "is taken"},
		"a kind twice":                  {func() error { _ = webhook.AddDefaulter(w, nothing); return webhook.AddDefaulter(w, nothing) }(), "is taken"},
		"an unknown kind":               {webhook.AddDefaulter(unknown, nothing), "AddToScheme"},
		"conversion of an unknown kind": {webhook.AddConversion(w, &lonely{}), "AddToScheme"},
		"conversion twice":              {func() error { _ = webhook.AddConversion(w, &widget{}); return webhook.AddConversion(w, &widget{}) }(), "it is added already"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestDisabledWebhooksAnswerNothing(t *testing.T) {
	t.Parallel()
	w := newWeb(t, func(o *webhook.Options) { o.Disabled = true })
	if err := webhook.AddDefaulter(w, defaulter(func(context.Context, *widget) error { return nil })); err != nil {
		t.Fatal(err)
	}
	if got := post(w, mutatePath, "{}"); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "ENABLE_WEBHOOKS") || w.Paths() != nil {
		t.Errorf("%d %s, paths %v", got.Code, got.Body, w.Paths())
	}
	if err := w.Ready(nil); err != nil {
		t.Errorf("a server without webhooks is ready: %v", err)
	}
}

func TestFlightRecorderShowsWhoAskedAndTheVerdict(t *testing.T) {
	t.Parallel()
	recorder := trace.NewRecorder(trace.Options{})
	w := newWeb(t, func(o *webhook.Options) { o.Trace = recorder })
	err := webhook.AddHandler(w, "/h", webhook.HandlerFunc(func(ctx context.Context, r *webhook.Request) webhook.Response {
		if trace.FromContext(ctx).ID() == (trace.ID{}) {
			t.Error("the context has no record")
		}
		if r.Operation == admissionv1.Update {
			return webhook.Denied("the password hunter2 is weak")
		}
		return webhook.Response{Allowed: true, Patch: []webhook.PatchOperation{{Op: "add", Path: "/data/token", Value: "hunter2"}, {Op: "add", Path: "/metadata/labels/a~1b", Value: "c"}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	dry := true
	create := request(admissionv1.Create, plain, "")
	create.DryRun = &dry
	ask(t, w, "/h", create)
	ask(t, w, "/h", request(admissionv1.Update, plain, plain))
	for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
		secret := request(op, plain, plain)
		secret.Kind = metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}
		ask(t, w, "/h", secret)
	}
	var got []string
	for r := range recorder.Records() {
		line := r.String()
		at := strings.Index(line, " in ")
		_, reason, _ := strings.Cut(line[at+4:], ": ")
		got = append(got, strings.TrimSpace(line[:at]+" "+reason))
	}
	want := []string{
		"/h CREATE Widget default/mine by alice (dry run): - -> - -> patch Widget default/mine (data.token,metadata.labels.a/b) -> allowed",
		"/h UPDATE Widget default/mine by alice: - -> - -> - -> denied the password hunter2 is weak",
		"/h CREATE Secret default/mine by alice: - -> - -> patch Secret default/mine (data,metadata) -> allowed",
		"/h UPDATE Secret default/mine by alice: - -> - -> - -> denied the reason is withheld because it concerns a Secret",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
