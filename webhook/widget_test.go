// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/webhook"
	"github.com/steer-dev/steer/webhook/conversion"
)

// widget is a kind with three versions, of which v2 is the hub.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              widgetSpec `json:"spec"`
	Status            struct {
		Ready bool `json:"ready,omitempty"`
	} `json:"status,omitempty"`
}

type widgetSpec struct {
	Size  int      `json:"size,omitempty"`
	Names []string `json:"names,omitempty"`
	Parts []part   `json:"parts,omitempty"`
}

type part struct {
	Name  string `json:"name"`
	Count int    `json:"count,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Names, out.Spec.Parts = slices.Clone(w.Spec.Names), slices.Clone(w.Spec.Parts)
	return &out
}

func (w *widget) Hub() {}

type widgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Size              string `json:"size"`
}

func (w *widgetV1) DeepCopyObject() runtime.Object { out := *w; return &out }

func (w *widgetV1) ConvertTo(hub conversion.Hub) error {
	dst := hub.(*widget)
	switch w.Size {
	case "panic":
		panic("no such size")
	case "forget":
		return nil
	}
	dst.ObjectMeta = w.ObjectMeta
	if _, err := fmt.Sscan(w.Size, &dst.Spec.Size); err != nil {
		return fmt.Errorf("size %q is no number", w.Size)
	}
	return nil
}

func (w *widgetV1) ConvertFrom(hub conversion.Hub) error {
	src := hub.(*widget)
	w.ObjectMeta, w.Size = src.ObjectMeta, fmt.Sprint(src.Spec.Size)
	return nil
}

// widgetV3 is like v1, under another name.
type widgetV3 struct{ widgetV1 }

func (w *widgetV3) DeepCopyObject() runtime.Object { out := *w; return &out }

func addWidgets(s *runtime.Scheme) error {
	group := schema.GroupVersion{Group: "example.com"}
	for version, obj := range map[string]runtime.Object{"v1": &widgetV1{}, "v2": &widget{}, "v3": &widgetV3{}} {
		group.Version = version
		s.AddKnownTypeWithName(group.WithKind("Widget"), obj)
		metav1.AddToGroupVersion(s, group)
	}
	return nil
}

// lonely is a kind of one version.
type lonely struct{ widget }

func (l *lonely) DeepCopyObject() runtime.Object { out := *l; return &out }

// web is a manager with nothing but webhooks.
type web struct {
	*webhook.Server
	log *lines
}

// lines is a log that can be waited for.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait waits for a text in the log.
func (l *lines) wait(ctx context.Context, text string) error {
	for {
		l.mu.Lock()
		if strings.Contains(l.text.String(), text) {
			l.mu.Unlock()
			return nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the log does not say %q: %w", text, ctx.Err())
		}
	}
}

func (w web) Webhooks() *webhook.Server { return w.Server }

func newWeb(t *testing.T, change func(*webhook.Options)) web {
	t.Helper()
	scheme, err := client.NewScheme(addWidgets)
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	o := webhook.Options{Scheme: scheme, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&o)
	}
	return web{webhook.New(o), log}
}

// post sends a body as the API server does.
func post(h http.Handler, url, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// ask sends an admission request, and returns the response.
func ask(t *testing.T, h http.Handler, path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: request}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	w := post(h, path+"?timeout=10s", string(body))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.TypeMeta != review.TypeMeta || answer.Response == nil || answer.Response.UID != request.UID {
		t.Fatalf("%s: the answer is no review of the request: %s", path, w.Body)
	}
	return answer.Response
}

// request is an admission request about widgets of v2.
func request(op admissionv1.Operation, object, old string) *admissionv1.AdmissionRequest {
	r := &admissionv1.AdmissionRequest{
		UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Operation: op, Namespace: "default", Name: "mine",
		Kind:     metav1.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"},
		Resource: metav1.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"},
	}
	r.UserInfo.Username = "alice"
	if object != "" {
		r.Object.Raw = []byte(object)
	}
	if old != "" {
		r.OldObject.Raw = []byte(old)
	}
	return r
}

const plain = `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"mine","namespace":"default"},"spec":{}}`

// defaulter is a function as a webhook.Defaulter.
type defaulter func(ctx context.Context, w *widget) error

func (f defaulter) Default(ctx context.Context, w *widget) error { return f(ctx, w) }

// validator is a function as a webhook.Validator.
type validator func(ctx context.Context, op string, old, w *widget) (webhook.Warnings, error)

func (f validator) ValidateCreate(ctx context.Context, w *widget) (webhook.Warnings, error) {
	return f(ctx, "create", nil, w)
}

func (f validator) ValidateUpdate(ctx context.Context, old, w *widget) (webhook.Warnings, error) {
	return f(ctx, "update", old, w)
}

func (f validator) ValidateDelete(ctx context.Context, w *widget) (webhook.Warnings, error) {
	return f(ctx, "delete", nil, w)
}

const (
	mutatePath   = "/mutate-example-com-v2-widget"
	validatePath = "/validate-example-com-v2-widget"
)

// errTest is an error of no meaning.
var errTest = errors.New("a test wants it")
