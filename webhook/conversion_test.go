// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/webhook"
)

type conversionAnswer struct {
	APIVersion, Kind string
	Response         struct {
		UID              string
		ConvertedObjects []json.RawMessage
		Result           struct{ Status, Message string }
	}
}

func convert(t *testing.T, h http.Handler, to string, objects ...string) conversionAnswer {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u1","desiredAPIVersion":%q,"objects":[%s]}}`, to, strings.Join(objects, ","))
	w := post(h, "/convert?timeout=30s", body)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var answer conversionAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.APIVersion != "apiextensions.k8s.io/v1" || answer.Kind != "ConversionReview" || answer.Response.UID != "u1" {
		t.Fatalf("the answer is no review of the request: %s", w.Body)
	}
	return answer
}

// widgetOf is a widget of v1 or v3.
func widgetOf(version, name, size string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":%q,"namespace":"default","uid":"1","labels":{"a":"b"}},"size":%q}`, version, name, size)
}

func newConverting(t *testing.T) web {
	t.Helper()
	w := newWeb(t, nil)
	if err := webhook.AddConversion(w, &widget{}); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestConversionGoesByWayOfTheHub(t *testing.T) {
	t.Parallel()
	w := newConverting(t)
	hub := `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"b","namespace":"default","uid":"1","labels":{"a":"b"}},"spec":{"size":7},"status":{}}`
	for to, want := range map[string][]string{
		"v1": {widgetOf("v1", "a", "1"), widgetOf("v1", "b", "7"), widgetOf("v1", "c", "3")},
		"v2": {strings.NewReplacer(`"b","namespace`, `"a","namespace`, "7", "1").Replace(hub), hub, strings.NewReplacer(`"b","namespace`, `"c","namespace`, "7", "3").Replace(hub)},
		"v3": {widgetOf("v3", "a", "1"), widgetOf("v3", "b", "7"), widgetOf("v3", "c", "3")},
	} {
		got := convert(t, w, "example.com/"+to, widgetOf("v1", "a", "1"), hub, widgetOf("v3", "c", "3")).Response
		if got.Result.Status != "Success" || len(got.ConvertedObjects) != 3 {
			t.Fatalf("to %s: %+v", to, got)
		}
		for i := range want {
			if !sameJSON(t, string(got.ConvertedObjects[i]), want[i]) {
				t.Errorf("to %s: object %d is %s, want %s", to, i, got.ConvertedObjects[i], want[i])
			}
		}
	}
}

func TestConversionThatFailsNamesTheObject(t *testing.T) {
	t.Parallel()
	w := newConverting(t)
	for _, c := range []struct{ name, to, object, says string }{
		{"an error", "example.com/v2", widgetOf("v1", "bad", "large"), `Widget default/bad: size "large" is no number`},
		{"a panic", "example.com/v2", widgetOf("v1", "bad", "panic"), "Widget default/bad: the conversion to example.com/v2 panicked: no such size"},
		{"metadata that is lost", "example.com/v2", widgetOf("v1", "bad", "forget"), "dst.ObjectMeta = src.ObjectMeta"},
		{"a version that the operator does not know", "example.com/v9", widgetOf("v1", "bad", "1"), "not its version v9: it knows v2 and [v1 v3]"},
		{"an object of such a version", "example.com/v2", widgetOf("v9", "bad", "1"), "not its version v9"},
		{"another kind", "example.com/v2", `{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"bad"}}`, "webhook.AddConversion"},
		{"no object", "example.com/v2", `7`, "an object"},
		{"not its type", "example.com/v2", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"bad"},"size":4}`, "read a Widget"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := convert(t, w, c.to, widgetOf("v1", "good", "1"), c.object).Response
			if c.to == "example.com/v9" {
				got = convert(t, w, c.to, c.object).Response
			}
			if got.Result.Status != "Failure" || !strings.Contains(got.Result.Message, c.says) || len(got.ConvertedObjects) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	if log := w.log.String(); !strings.Contains(log, "conversion.go") {
		t.Errorf("the log has no stack of the panic: %s", log)
	}
}

func TestConversionOfNothingAndToTheSameVersionChangesNothing(t *testing.T) {
	t.Parallel()
	w := newConverting(t)
	if got := convert(t, w, "example.com/v2").Response; got.Result.Status != "Success" || got.ConvertedObjects == nil || len(got.ConvertedObjects) != 0 {
		t.Errorf("%+v", got)
	}
	object := strings.Replace(widgetOf("v1", "a", "1"), `"size"`, `"new":{},"size"`, 1)
	if got := convert(t, w, "example.com/v1", object).Response.ConvertedObjects; len(got) != 1 || !sameJSON(t, string(got[0]), object) {
		t.Errorf("%s", got)
	}
}
