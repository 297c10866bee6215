// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// cluster serves the built-in kinds.
type cluster struct {
	store  *storage.Memory
	server *apiserver.Server
	deps   *match.Deps
}

func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	server, err := apiserver.New(apiserver.Options{Store: store})
	if err != nil {
		tb.Fatal(err)
	}
	if err := server.Install(core.Resources()...); err != nil {
		tb.Fatal(err)
	}
	return &cluster{store: store, server: server, deps: match.NewDeps(component.Deps{Store: store, Server: server, Authorizer: auth.AllowMasters{}})}
}

// write is a request for a resource ("pods", "deployments.apps") in a version.
func (c *cluster) write(tb testing.TB, name, version, subresource string, operation resource.Operation) *resource.AdmissionRequest {
	tb.Helper()
	gr := schema.ParseGroupResource(name)
	for _, r := range c.server.Resources() {
		if r.GroupResource() != gr {
			continue
		}
		for i := range r.Versions {
			v := &r.Versions[i]
			if v.Name != version {
				continue
			}
			q := &resource.Request{Resource: r, Version: v, Subresource: subresource, Name: "x", User: &auth.User{Name: "jane"}}
			if r.Namespaced {
				q.Namespace = "default"
			}
			return &resource.AdmissionRequest{Request: q, Operation: operation}
		}
	}
	tb.Fatalf("%s is not served in %s", name, version)
	return nil
}

func rule(operations, groups, versions, resources string, scope ...v1.ScopeType) v1.RuleWithOperations {
	r := v1.RuleWithOperations{Rule: v1.Rule{
		APIGroups: strings.Split(groups, ","), APIVersions: strings.Split(versions, ","), Resources: strings.Split(resources, ","),
	}}
	for _, o := range strings.Split(operations, ",") {
		r.Operations = append(r.Operations, v1.OperationType(o))
	}
	if len(scope) > 0 {
		r.Scope = &scope[0]
	}
	return r
}

func webhook(r ...v1.RuleWithOperations) *match.Constraints {
	return match.NewConstraints(r, ptr.To(v1.Equivalent), nil, nil)
}

func TestConstraintsFollowRules(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i, one := range []struct {
		rule                       v1.RuleWithOperations
		name, version, subresource string
		operation                  resource.Operation
		want                       string // resource and kind of the invocation; empty: none
	}{
		{rule("CREATE", "", "v1", "pods"), "pods", "v1", "", resource.Create, "/v1, Resource=pods /v1, Kind=Pod"},
		{rule("CREATE", "", "v1", "pods"), "pods", "v1", "", resource.Update, ""},
		{rule("*", "", "v1", "pods"), "pods", "v1", "", resource.Delete, "/v1, Resource=pods /v1, Kind=Pod"},
		{rule("*", "", "v1", "pods"), "pods", "v1", "status", resource.Update, ""},
		{rule("*", "", "v1", "pods/*"), "pods", "v1", "status", resource.Update, "/v1, Resource=pods /v1, Kind=Pod"},
		{rule("*", "", "v1", "pods/*"), "pods", "v1", "", resource.Update, "/v1, Resource=pods /v1, Kind=Pod"},
		{rule("*", "", "v1", "*/status"), "pods", "v1", "status", resource.Update, "/v1, Resource=pods /v1, Kind=Pod"},
		{rule("*", "", "v1", "*"), "pods", "v1", "status", resource.Update, ""},
		{rule("*", "*", "*", "*/*"), "deployments.apps", "v1", "scale", resource.Update, "apps/v1, Resource=deployments autoscaling/v1, Kind=Scale"},
		{rule("*", "apps", "v1", "pods"), "pods", "v1", "", resource.Create, ""},
		{rule("*", "*", "*", "*", v1.ClusterScope), "pods", "v1", "", resource.Create, ""},
		{rule("*", "*", "*", "*", v1.NamespacedScope), "pods", "v1", "", resource.Create, "/v1, Resource=pods /v1, Kind=Pod"},
		{rule("*", "*", "*", "*", v1.NamespacedScope), "namespaces", "v1", "", resource.Create, ""},
		{rule("*", "*", "*", "*", v1.ClusterScope), "namespaces", "v1", "", resource.Create, "/v1, Resource=namespaces /v1, Kind=Namespace"},
		// Other versions of the resource, and another group with the same objects.
		{rule("*", "autoscaling", "v1", "horizontalpodautoscalers"), "horizontalpodautoscalers.autoscaling", "v2", "", resource.Update,
			"autoscaling/v1, Resource=horizontalpodautoscalers autoscaling/v1, Kind=HorizontalPodAutoscaler"},
		{rule("*", "events.k8s.io", "v1", "events"), "events", "v1", "", resource.Create, "events.k8s.io/v1, Resource=events events.k8s.io/v1, Kind=Event"},
		{rule("*", "", "v1", "events"), "events.events.k8s.io", "v1", "", resource.Create, "/v1, Resource=events /v1, Kind=Event"},
	} {
		r := c.write(t, one.name, one.version, one.subresource, one.operation)
		constraints := webhook(one.rule)
		as, ok, err := constraints.Matches(t.Context(), match.NewRequest(r, c.deps))
		got := ""
		if ok {
			got = as.Resource.String() + " " + as.Kind.String()
		}
		if err != nil || got != one.want {
			t.Errorf("%d: %q, want %q: %v", i, got, one.want, err)
		}
		// The index leaves out nothing that matches.
		found := match.NewIndex(c.deps, []*match.Constraints{constraints}, func(c *match.Constraints) *match.Constraints { return c }).Candidates(r)
		if len(found) != min(len(one.want), 1) {
			t.Errorf("%d: the index finds %d, want %q", i, len(found), one.want)
		}
	}
}

func TestConstraintsOfPolicyExactAreNotEquivalent(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.write(t, "horizontalpodautoscalers.autoscaling", "v2", "", resource.Update)
	for _, policy := range []*v1.MatchPolicyType{nil, ptr.To(v1.Exact)} {
		constraints := match.NewConstraints([]v1.RuleWithOperations{rule("*", "autoscaling", "v1", "*")}, policy, nil, nil)
		if _, ok, err := constraints.Matches(t.Context(), match.NewRequest(r, c.deps)); ok || err != nil {
			t.Errorf("it matches another version: %v", err)
		}
	}
}

func TestConstraintsFollowSelectors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	steptest.Put(t, c.store, storage.Key{Bucket: "namespaces", Name: "default"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"zone": "a"}}})
	every := []v1.RuleWithOperations{rule("*", "*", "*", "*/*")}
	labelled := func(of map[string]string) resource.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: of}}
	}
	red, zone := map[string]string{"colour": "red"}, map[string]string{"zone": "a"}
	for name, one := range map[string]struct {
		resource, namespace string
		obj, old            resource.Object
		objects, namespaces map[string]string
		want                string
	}{
		"object":                     {"pods", "default", labelled(red), nil, red, nil, "yes"},
		"old object":                 {"pods", "default", labelled(nil), labelled(red), red, nil, "yes"},
		"neither":                    {"pods", "default", labelled(nil), labelled(nil), red, nil, "no"},
		"no object":                  {"pods", "default", nil, nil, red, nil, "no"},
		"namespace":                  {"pods", "default", labelled(nil), nil, nil, zone, "yes"},
		"other namespace":            {"pods", "default", labelled(nil), nil, nil, red, "no"},
		"namespace that is missing":  {"pods", "gone", labelled(nil), nil, nil, zone, `namespaces "gone" not found`},
		"missing, but not selected":  {"pods", "gone", labelled(nil), nil, red, zone, "no"},
		"cluster-scoped":             {"nodes", "", labelled(nil), nil, nil, zone, "yes"},
		"a Namespace by its own":     {"namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: zone}}, nil, nil, zone, "yes"},
		"a Namespace by its own, no": {"namespaces", "", &corev1.Namespace{}, nil, nil, zone, "no"},
	} {
		r := c.write(t, one.resource, "v1", "", resource.Create)
		r.Namespace, r.Object, r.Old = one.namespace, one.obj, one.old
		of := func(want map[string]string) *metav1.LabelSelector {
			if want == nil {
				return nil
			}
			return &metav1.LabelSelector{MatchLabels: want}
		}
		_, ok, err := match.NewConstraints(every, nil, of(one.namespaces), of(one.objects)).Matches(t.Context(), match.NewRequest(r, c.deps))
		got := map[bool]string{true: "yes", false: "no"}[ok]
		if err != nil {
			got = err.Error()
		}
		if got != one.want {
			t.Errorf("%s: %s, want %s", name, got, one.want)
		}
	}
}

func TestPolicyConstraintsFollowExclusionsAndNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	named := func(names ...string) []v1.NamedRuleWithOperations {
		return []v1.NamedRuleWithOperations{{ResourceNames: names, RuleWithOperations: rule("*", "", "v1", "pods")}}
	}
	for name, one := range map[string]struct {
		m    *v1.MatchResources
		want bool
	}{
		"nothing given":  {nil, true},
		"no rules":       {&v1.MatchResources{}, true},
		"rule":           {&v1.MatchResources{ResourceRules: named()}, true},
		"name":           {&v1.MatchResources{ResourceRules: named("x")}, true},
		"another name":   {&v1.MatchResources{ResourceRules: named("y")}, false},
		"excluded":       {&v1.MatchResources{ExcludeResourceRules: named()}, false},
		"other excluded": {&v1.MatchResources{ExcludeResourceRules: named("y")}, true},
	} {
		r := c.write(t, "pods", "v1", "", resource.Create)
		if _, ok, err := match.NewPolicyConstraints(one.m).Matches(t.Context(), match.NewRequest(r, c.deps)); ok != one.want || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

func TestIndexExemptsConfigurationsOfAdmission(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	x := match.NewIndex(c.deps, []*match.Constraints{webhook(rule("*", "*", "*", "*/*"))}, func(c *match.Constraints) *match.Constraints { return c })
	for _, name := range []string{
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings",
	} {
		if found := x.Candidates(c.write(t, name+".admissionregistration.k8s.io", "v1", "", resource.Delete)); len(found) > 0 {
			t.Errorf("%s are held to what they configure", name)
		}
	}
	if found := x.Candidates(c.write(t, "pods", "v1", "", resource.Delete)); len(found) != 1 {
		t.Errorf("of Pods there are %d candidates", len(found))
	}
}

func TestIndexFollowsWhatIsServed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	x := match.NewIndex(c.deps, []*match.Constraints{webhook(rule("*", "example.com", "v2", "events"))}, func(c *match.Constraints) *match.Constraints { return c })
	r := c.write(t, "events", "v1", "", resource.Create)
	if found := x.Candidates(r); len(found) != 0 {
		t.Errorf("%d candidates of a resource that is not served", len(found))
	}
	other := *c.write(t, "events.events.k8s.io", "v1", "", resource.Create).Resource
	other.Group = "example.com"
	other.Versions = slices.Clone(other.Versions)
	other.Versions[0].Name, other.Storage.Version = "v2", "v2"
	if err := c.server.Install(&other); err != nil {
		t.Fatal(err)
	}
	if found := x.Candidates(r); len(found) != 1 {
		t.Errorf("%d candidates after a resource with the same objects is served", len(found))
	}
}

func TestRequestConvertsBothObjectsAndBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.write(t, "events", "v1", "", resource.Update)
	event := func(message string) *corev1.Event {
		return &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Message: message}
	}
	r.Object, r.Old = event("new"), event("old")
	q := match.NewRequest(r, c.deps)
	kind := eventsv1.SchemeGroupVersion.WithKind("Event")
	form, err := q.As(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	obj, old := form.Object.(*eventsv1.Event), form.OldObject.(*eventsv1.Event)
	if obj.Note != "new" || old.Note != "old" || obj.APIVersion != "events.k8s.io/v1" || r.Object.(*corev1.Event).Message != "new" {
		t.Errorf("converted to %+v and %+v", obj, old)
	}
	changed := obj.DeepCopy()
	changed.Note = "changed"
	if err := q.Replace(t.Context(), changed, kind); err != nil {
		t.Fatal(err)
	}
	if now := r.Object.(*corev1.Event); now.Message != "changed" || now.APIVersion != "v1" {
		t.Errorf("the object of the request is %+v", now)
	}
	if form, err := q.As(t.Context(), corev1.SchemeGroupVersion.WithKind("Event")); err != nil || form.Object.(*corev1.Event).Message != "changed" {
		t.Errorf("the next one sees %+v, %v", form, err)
	}
	if _, err := q.As(t.Context(), corev1.SchemeGroupVersion.WithKind("Pod")); err == nil || !strings.Contains(err.Error(), "unable to convert") {
		t.Errorf("to another kind: %v", err)
	}
}

func TestConditionsFollowTheFailurePolicy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	compiler := admissioncel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	r := c.write(t, "pods", "v1", "", resource.Create)
	r.Object = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "b"}}}
	q := match.NewRequest(r, c.deps)
	as, _, err := webhook(rule("*", "", "v1", "pods")).Matches(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	const fails = "object.metadata.missing == 'x'"
	for i, one := range []struct {
		expressions []string
		policy      *v1.FailurePolicyType
		want        string
	}{
		{nil, nil, "true"},
		{[]string{"request.userInfo.username == 'jane'", "object.metadata.labels.a == 'b'"}, nil, "true"},
		{[]string{"true", "oldObject != null"}, nil, "false"},
		{[]string{fails, "false"}, nil, "false"},
		{[]string{"true", fails}, nil, "false expression '" + fails + "' resulted in error: no such key: missing"},
		{[]string{"true", fails}, ptr.To(v1.Ignore), "false"},
		{[]string{"this does not compile"}, nil, "false compilation error"},
		{[]string{"authorizer.group('').resource('pods').check('create').allowed()"}, nil, "false"},
	} {
		var list []v1.MatchCondition
		for k, e := range one.expressions {
			list = append(list, v1.MatchCondition{Name: fmt.Sprint(k), Expression: e})
		}
		conditions := match.NewConditions(list, match.ConditionOptions{Name: "w", Kind: "webhook", Type: "admit", FailurePolicy: one.policy, Compiler: compiler})
		ok, err := conditions.Match(t.Context(), q, as, nil)
		got := fmt.Sprint(ok)
		if err != nil {
			got += " " + err.Error()
		}
		if !strings.HasPrefix(got, one.want) {
			t.Errorf("%d: %s, want %s", i, got, one.want)
		}
	}
}

func BenchmarkIndexOfUnconcernedWrites(b *testing.B) {
	c := newCluster(b)
	var all []*match.Constraints
	for i := range 1000 {
		all = append(all, webhook(rule("*", fmt.Sprintf("g%d.example.com", i), "v1", "*")))
	}
	x := match.NewIndex(c.deps, all, func(c *match.Constraints) *match.Constraints { return c })
	r := c.write(b, "pods", "v1", "", resource.Create)
	for b.Loop() {
		if len(x.Candidates(r)) != 0 {
			b.Fatal("a rule of another group matches")
		}
	}
}

func BenchmarkSelectorsThatDoNotMatch(b *testing.B) {
	c := newCluster(b)
	steptest.Put(b, c.store, storage.Key{Bucket: "namespaces", Name: "default"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	var all []*match.Constraints
	for i := range 100 {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{"for": fmt.Sprint(i)}}
		if i%2 == 0 {
			all = append(all, match.NewConstraints([]v1.RuleWithOperations{rule("*", "", "v1", "pods")}, nil, s, nil))
		} else {
			all = append(all, match.NewConstraints([]v1.RuleWithOperations{rule("*", "", "v1", "pods")}, nil, nil, s))
		}
	}
	r := c.write(b, "pods", "v1", "", resource.Create)
	r.Object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x", "for": "nothing"}}}
	ctx := context.Background()
	for b.Loop() {
		q := match.NewRequest(r, c.deps)
		for _, one := range all {
			if _, ok, err := one.Matches(ctx, q); ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	}
}
