// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package advice_test

import (
	"strings"
	"testing"

	"github.com/steer-dev/steer/generate/advice"
)

const types = `package v1

type Phase string

type Spec struct {
	Size    int32   ` + "`json:\"size\"`" + `
	Limit   int32   ` + "`json:\"limit,omitempty\"`" + `
	Phase   Phase   ` + "`json:\"phase,omitempty\"`" + `
	Image   string  ` + "`json:\"image\"`" + `
	Grace   *int64  ` + "`json:\"grace,omitempty\"`" + `
	Paused  bool    ` + "`json:\"paused,omitempty\"`" + `
	Parts   []Phase ` + "`json:\"parts,omitempty\"`" + `
}

type Thing struct {
	metav1.ObjectMeta ` + "`json:\"metadata\"`" + `
	Spec Spec ` + "`json:\"spec\"`" + `
}
`

// advise returns the lines about a method with a body.
func advise(t *testing.T, signature, body string) []string {
	t.Helper()
	hook := "package hooks\n\nimport v1 \"example.com/api/v1\"\n\nfunc (h *Hook) " + signature + " {\n" + body + "\n}\n"
	out, err := advice.Webhooks([]advice.File{{Package: "example.com/api/v1", Path: "types.go", Source: []byte(types)}, {Package: "example.com/hooks", Path: "hook.go", Source: []byte(hook)}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

const (
	defaulter = "Default(ctx context.Context, obj *v1.Thing) error"
	creation  = "ValidateCreate(ctx context.Context, obj *v1.Thing) (webhook.Warnings, error)"
	update    = "ValidateUpdate(ctx context.Context, oldObj, obj *v1.Thing) (webhook.Warnings, error)"
	deletion  = "ValidateDelete(ctx context.Context, obj *v1.Thing) (webhook.Warnings, error)"
)

func TestAdviceSaysWhatCouldReplaceAStatement(t *testing.T) {
	t.Parallel()
	deny := func(cond string) string { return "if " + cond + " { return nil, errors.New(\"no\") }" }
	rule := func(cel string) string {
		return `+kubebuilder:validation:XValidation:rule="` + cel + `",message="no" on Thing`
	}
	for _, c := range []struct{ signature, body, want string }{
		{defaulter, `if obj.Spec.Limit == 0 { obj.Spec.Limit = 100 }`, "+kubebuilder:default=100 on Spec.Limit"},
		{defaulter, `if obj.Spec.Image == "" { obj.Spec.Image = "nginx" }`, `+kubebuilder:default="nginx" on Spec.Image`},
		{defaulter, `if obj.Spec.Grace == nil { obj.Spec.Grace = ptr.To[int64](30) }`, "+kubebuilder:default=30 on Spec.Grace"},
		{defaulter, `obj.Spec.Limit = 3`, "a MutatingAdmissionPolicy could do it"},
		{defaulter, `if obj.Spec.Limit == 0 { obj.Spec.Limit = obj.Spec.Size }`, "needs code"},
		{defaulter, `if obj.Spec.Limit == 0 { obj.Spec.Size = 3 }`, "needs code"},
		{defaulter, `obj.Spec.Image += ":latest"`, "needs code"},
		{creation, deny("obj.Spec.Size > 5"), rule("self.spec.size <= 5")},
		{creation, deny("obj.Spec.Limit > 5"), rule("(has(self.spec.limit) ? self.spec.limit : 0) <= 5")},
		{creation, deny(`obj.Spec.Phase == "Bad" || obj.Spec.Paused`), rule(`!((has(self.spec.phase) ? self.spec.phase : \"\") == \"Bad\" || (has(self.spec.paused) ? self.spec.paused : false))`)},
		{creation, deny(`!strings.HasPrefix(obj.Spec.Image, "r/")`), rule(`self.spec.image.startsWith(\"r/\")`)},
		{creation, deny("obj.Spec.Grace == nil"), rule("has(self.spec.grace)")},
		{creation, deny("obj.Spec.Grace != nil && *obj.Spec.Grace < 1"), rule("!(has(self.spec.grace) && self.spec.grace < 1)")},
		{creation, deny(`obj.Name == "x"`), rule(`self.metadata.name != \"x\"`)},
		{creation, `var errs field.ErrorList` + "\n" + `if obj.Spec.Size < 1 { errs = append(errs, field.Invalid(path, obj.Spec.Size, "no")) }`, rule("self.spec.size >= 1")},
		{update, deny("oldObj.Spec.Image != obj.Spec.Image"), "a marker could do it: " + rule("oldSelf.spec.image == self.spec.image")},
		{update, deny("obj.Spec.Size > 5"), "for creations too"},
		{update, `return h.ValidateCreate(ctx, obj)`, "as ValidateCreate"},
		{deletion, deny("obj.Spec.Size > 0"), "a ValidatingAdmissionPolicy could do it, with the expression oldObject.spec.size <= 0"},
		{creation, deny("parse(obj.Spec.Image) != nil"), "needs code"},
		{creation, deny("len(obj.Spec.Image) > 5"), "needs code"}, // bytes in Go, characters in CEL
		{creation, `if obj.Spec.Paused { return nil, nil }`, "needs code"},
		{creation, `if err := h.Get(ctx, key, other); err != nil { return nil, err }`, "reads other objects"},
		{creation, deny("h.limit > 5"), "needs code"},
		{creation, `for range obj.Spec.Parts { return nil, errors.New("no") }`, "needs code"},
		{creation, `return nil, nil`, "does nothing"},
	} {
		lines := advise(t, c.signature, c.body)
		if !strings.HasPrefix(lines[0], "hook.go:5: Hook.") || !strings.HasSuffix(lines[0], " of Thing") {
			t.Errorf("%s: %s", c.body, lines[0])
		}
		if got := strings.Join(lines[1:], "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.body, got, c.want)
		}
	}
}

func TestAdviceOfAKindOfOthersNamesPolicies(t *testing.T) {
	t.Parallel()
	lines := advise(t, "ValidateCreate(ctx context.Context, obj *corev1.Pod) (webhook.Warnings, error)", `if obj.Spec.HostNetwork { return nil, errors.New("no") }`)
	if got := strings.Join(lines, "\n"); !strings.Contains(got, "needs code") || !strings.Contains(got, "an admission policy compares its fields") || strings.Contains(got, "XValidation") {
		t.Errorf("got %s", got)
	}
}

func TestAdviceOfOtherMethodsIsNone(t *testing.T) {
	t.Parallel()
	if lines := advise(t, "Default() error", "return nil"); len(lines) != 1 || lines[0] != "" {
		t.Errorf("got %q", lines)
	}
}
