// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

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
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/admission/webhooks"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/internal/expression"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// The buckets of configurations.
const (
	mutating   = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
	validating = "admissionregistration.k8s.io/validatingwebhookconfigurations"
)

// cluster has the two plugins over the built-in kinds, and the webhooks that they call.
type cluster struct {
	store    *storage.Memory
	server   *apiserver.Server
	registry *prometheus.Registry
	// plugins by the bucket of their configurations.
	plugins map[string]resource.Admission

	mu    sync.Mutex
	calls []call
	on    map[string]func(c call) (status int, answer string, err error)
}

// call is a request that a webhook has received.
type call struct {
	// hook is the name of the webhook.
	hook   string
	http   *http.Request
	review []byte
}

// entropy returns the same UID for all reviews.
type entropy struct{ apiserver.Entropy }

func (entropy) UID() types.UID { return "review" }

func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	c := &cluster{
		store: storage.NewMemory(storage.MemoryOptions{}), registry: prometheus.NewRegistry(), plugins: map[string]resource.Admission{},
		on: map[string]func(call) (int, string, error){},
	}
	var err error
	if c.server, err = apiserver.New(apiserver.Options{Store: c.store}); err != nil {
		tb.Fatal(err)
	}
	if err := c.server.Install(core.Resources()...); err != nil {
		tb.Fatal(err)
	}
	client, err := webhookclient.New(webhookclient.Options{
		Resolve: func(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
			return webhookclient.Backend{Transport: c}, s == webhookclient.Service{Namespace: "default", Name: "hooks", Port: 443}
		},
	}, webhookclient.Deps{Store: c.store})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	d := component.Deps{
		Store: c.store, Server: c.server, Authorizer: auth.AllowMasters{}, Entropy: entropy{}, Metrics: c.registry, Webhooks: client,
	}
	first, second := webhooks.Parts(d, match.NewDeps(d), new(expression.Compiler))
	c.plugins[mutating], c.plugins[validating] = first.Admission, second.Admission
	return c
}

// RoundTrip implements http.RoundTripper: it is the Service hooks, where each webhook is at
// the path of its name. A webhook that has no answer allows.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	review, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	one := call{hook: strings.TrimPrefix(r.URL.Path, "/"), http: r, review: review}
	c.mu.Lock()
	c.calls = append(c.calls, one)
	answer := c.on[one.hook]
	c.mu.Unlock()
	status, body := http.StatusOK, response(`"allowed": true`)
	if bytes.Contains(review, []byte("admission.k8s.io/v1beta1")) {
		body = beta(body)
	}
	if answer != nil {
		if status, body, err = answer(one); err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// answers has a webhook answer each call with a body.
func (c *cluster) answers(hook, body string) {
	c.on[hook] = func(call) (int, string, error) { return http.StatusOK, body, nil }
}

// called returns the names of the webhooks that have been called since, in order.
func (c *cluster) called() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{}
	for _, one := range c.calls {
		names = append(names, one.hook)
	}
	c.calls = nil
	return names
}

// response is an answer with members of the response, beside its uid.
func response(members string) string {
	return `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "review", ` + members + `}}`
}

// beta is an answer in v1beta1.
func beta(answer string) string {
	return strings.Replace(answer, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1)
}

// patches is an answer that allows with a JSON patch.
func patches(operations string) string {
	patch, _ := json.Marshal([]byte(operations)) // bytes are base64 in JSON
	return response(`"allowed": true, "patchType": "JSONPatch", "patch": ` + string(patch))
}

// hook is a webhook for all writes.
func hook(name string, change ...func(*v1.MutatingWebhook)) v1.MutatingWebhook {
	path, none := "/"+name, v1.SideEffectClassNone
	w := v1.MutatingWebhook{
		Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
		ClientConfig: v1.WebhookClientConfig{Service: &v1.ServiceReference{Namespace: "default", Name: "hooks", Path: &path}},
		Rules: []v1.RuleWithOperations{{Operations: []v1.OperationType{"*"}, Rule: v1.Rule{
			APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"},
		}}},
	}
	for _, f := range change {
		f(&w)
	}
	return w
}

func ignoring(w *v1.MutatingWebhook) { policy := v1.Ignore; w.FailurePolicy = &policy }

func reinvoked(w *v1.MutatingWebhook) {
	policy := v1.IfNeededReinvocationPolicy
	w.ReinvocationPolicy = &policy
}

// configure stores a configuration in a bucket. That of validating webhooks has the same
// fields, but for the reinvocation policy.
func (c *cluster) configure(tb testing.TB, bucket, name string, hooks ...v1.MutatingWebhook) {
	tb.Helper()
	steptest.Put(tb, c.store, storage.Key{Bucket: bucket, Name: name}, &v1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks,
	})
}

// write is a request for a resource ("pods", "deployments.apps") in version v1.
func (c *cluster) write(tb testing.TB, name string, operation resource.Operation, obj, old resource.Object) *resource.AdmissionRequest {
	tb.Helper()
	gr := schema.ParseGroupResource(name)
	for _, r := range c.server.Resources() {
		for i := range r.Versions {
			if v := &r.Versions[i]; r.GroupResource() == gr && v.Name == "v1" {
				q := &resource.Request{Resource: r, Version: v, Name: "x", User: &auth.User{Name: "jane"}, Warnings: &resource.Warnings{}}
				if r.Namespaced {
					q.Namespace = "default"
				}
				return &resource.AdmissionRequest{Request: q, Operation: operation, Object: obj, Old: old, Strategy: v.Strategy}
			}
		}
	}
	tb.Fatalf("%s is not served in v1", name)
	return nil
}

// create is the creation of a ConfigMap.
func (c *cluster) create(tb testing.TB) *resource.AdmissionRequest {
	tb.Helper()
	return c.write(tb, "configmaps", resource.Create, configMap("b"), nil)
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"a": value},
	}
}

// admit has the plugin of a bucket decide on a write, in both passes and with a second
// round, and describes its error.
func (c *cluster) admit(ctx context.Context, bucket string, r *resource.AdmissionRequest, before ...resource.Admission) string {
	chain := resource.Repeated{Admissions: append(before, c.plugins[bucket])}
	err := chain.Admit(ctx, r)
	if err == nil {
		err = chain.Validate(ctx, r)
	}
	return describe(err)
}

// describe is an error as "code reason: message"; empty for none.
func describe(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case errors.As(err, &status):
		return fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, status.Status().Message)
	}
	return "no status: " + err.Error()
}

func equal(tb testing.TB, what string, want, got any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// counted returns the samples of a counter, or of a histogram how many it has, by the
// values of their labels in the order of the names.
func (c *cluster) counted(tb testing.TB, name string) map[string]int {
	tb.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[strings.Join(labels, " ")] = int(m.GetCounter().GetValue()) + int(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
