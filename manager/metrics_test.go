// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// measured runs a manager under a workload with every outcome there is, and
// returns its registry.
func measured(t *testing.T) *prometheus.Registry {
	t.Helper()
	env := newEnv(t, corev1.AddToScheme)
	m := newOperator(t, env.Config, manager.Options{
		Instance: "one",
		Election: manager.Election{Enabled: true, Namespace: "default"},
	})
	seen := map[string]int{}
	outcomes := controller.Func[*corev1.Pod](func(ctx context.Context, pod *corev1.Pod) (controller.Result, error) {
		seen[pod.Name]++
		switch {
		case pod.Name == "fails" && seen[pod.Name] == 1:
			return controller.Result{}, errors.New("broken")
		case pod.Name == "terminal":
			return controller.Result{}, controller.Terminal(errors.New("broken for good"))
		case pod.Name == "panics" && seen[pod.Name] == 1:
			panic("broken")
		case pod.Name == "again" && seen[pod.Name] == 1:
			return controller.Retry(), nil
		case pod.Name == "later" && seen[pod.Name] == 1:
			return controller.After(time.Millisecond), nil
		case pod.Name == "slow" && seen[pod.Name] == 1:
			<-ctx.Done()
			return controller.Result{}, ctx.Err()
		}
		ready := corev1.ConditionTrue
		if pod.Labels["broken"] != "" {
			ready = corev1.ConditionFalse
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, Reason: "Tested", LastTransitionTime: metav1.Now()}}
		return controller.Done(), nil
	})
	if err := controller.Add(m, outcomes, controller.Timeout(100*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	ready := func(status corev1.ConditionStatus) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == status })
		}
	}
	names := []string{"fine", "fails", "terminal", "panics", "again", "later", "slow"}
	for _, name := range names {
		env.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		})
	}
	for _, name := range names {
		if name != "terminal" {
			steertest.Wait(env, "default/"+name, ready(corev1.ConditionTrue))
		}
	}
	broken := steertest.Wait(env, "default/fine", ready(corev1.ConditionTrue))
	before := broken.DeepCopy()
	broken.Labels = map[string]string{"broken": "yes"}
	// A patch without a revision: the status may be written again at any time.
	if err := env.Client.Patch(t.Context(), broken, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	steertest.Wait(env, "default/fine", ready(corev1.ConditionFalse))
	// What the server has, the cache has soon: the last transition is counted.
	for deadline := time.Now().Add(time.Minute); len(find(t, m.Registry(), "operator_status_condition_transition_seconds")) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no transition was measured")
		}
		steertest.Wait(env, "default/fine", ready(corev1.ConditionFalse))
	}
	return m.Registry()
}

func gather(t *testing.T, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range families {
		out[f.GetName()] = f
	}
	return out
}

func find(t *testing.T, registry *prometheus.Registry, name string) []*dto.Metric {
	t.Helper()
	return gather(t, registry)[name].GetMetric()
}

// series are the labels of the series of a metric as a query names it: a
// histogram's buckets have an le, its sum and count end in _sum and _count.
func series(families map[string]*dto.MetricFamily, name string) (out []map[string]string) {
	base, bucket := name, false
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if short, ok := strings.CutSuffix(name, suffix); ok && families[short].GetType() == dto.MetricType_HISTOGRAM {
			base, bucket = short, suffix == "_bucket"
		}
	}
	f := families[base]
	if f.GetType() == dto.MetricType_HISTOGRAM && base == name {
		return nil // a histogram has no series of its own name
	}
	for _, m := range f.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if bucket {
			if len(m.GetHistogram().GetBucket()) == 0 {
				continue
			}
			labels["le"] = "+Inf"
		}
		out = append(out, labels)
	}
	return out
}

// The parts of a query that ask for series.
var (
	selectorPattern = regexp.MustCompile(`\b([a-z][a-z0-9]*_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcherPattern  = regexp.MustCompile(`([a-z_]+)\s*(=~|!=|=)\s*"([^"]*)"`)
	groupingPattern = regexp.MustCompile(`by \(([^)]*)\)`)
)

// fromPrometheus tells the labels that a scrape adds to every series.
func fromPrometheus(label string) bool {
	return slices.Contains([]string{"job", "instance", "pod"}, label)
}

func matches(labels map[string]string, matchers string) (bool, error) {
	for _, m := range matcherPattern.FindAllStringSubmatch(matchers, -1) {
		label, op, want := m[1], m[2], m[3]
		if fromPrometheus(label) || strings.HasPrefix(want, "$") {
			continue
		}
		got, ok := labels[label], false
		switch op {
		case "=":
			ok = got == want
		case "!=":
			ok = got != want
		case "=~":
			pattern, err := regexp.Compile("^(?:" + want + ")$")
			if err != nil {
				return false, err
			}
			ok = pattern.MatchString(got)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// check evaluates the selectors and groupings of one query.
func check(families map[string]*dto.MetricFamily, query string) error {
	rest := groupingPattern.ReplaceAllString(query, "")
	found := 0
	for _, s := range selectorPattern.FindAllStringSubmatch(rest, -1) {
		if s[1] == "histogram_quantile" {
			continue
		}
		found++
		shown := false
		for _, labels := range series(families, s[1]) {
			ok, err := matches(labels, s[2])
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			shown = true
			for _, g := range groupingPattern.FindAllStringSubmatch(query, -1) {
				for label := range strings.SplitSeq(g[1], ",") {
					label = strings.TrimSpace(label)
					if _, has := labels[label]; !has && !fromPrometheus(label) {
						return fmt.Errorf("%s has no label %s: %v", s[1], label, labels)
					}
				}
			}
		}
		if !shown {
			return fmt.Errorf("no series of %s{%s}", s[1], s[2])
		}
	}
	if found == 0 {
		return errors.New("the query selects nothing")
	}
	return nil
}

func TestABoardForControllerRuntimeShowsData(t *testing.T) {
	t.Parallel()
	families := gather(t, measured(t))
	file, err := os.Open("testdata/board.promql")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	queries := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		query := strings.TrimSpace(lines.Text())
		if query == "" || strings.HasPrefix(query, "#") {
			continue
		}
		queries++
		if err := check(families, query); err != nil {
			t.Errorf("%s\n\t%v", query, err)
		}
	}
	if queries == 0 {
		t.Error("there are no queries")
	}
	for _, wrong := range []string{
		"no_such_metric", `workqueue_depth{name="nobody"}`, "sum(workqueue_depth) by (shard)", "controller_runtime_reconcile_time_seconds", "1 + 1",
	} {
		if check(families, wrong) == nil {
			t.Errorf("%s passes: the test proves nothing", wrong)
		}
	}
}

func TestEveryOutcomeIsCounted(t *testing.T) {
	t.Parallel()
	registry := measured(t)
	for _, metric := range []string{
		"controller_runtime_reconcile_errors_total", "controller_runtime_terminal_reconcile_errors_total",
		"controller_runtime_reconcile_panics_total", "controller_runtime_reconcile_timeouts_total",
		"workqueue_adds_total", "workqueue_retries_total",
	} {
		found := find(t, registry, metric)
		if len(found) != 1 || found[0].GetCounter().GetValue() == 0 {
			t.Errorf("%s: %v", metric, found)
		}
	}
	for _, m := range find(t, registry, "controller_runtime_reconcile_total") {
		if m.GetCounter().GetValue() == 0 {
			t.Errorf("nothing counted for %v", m.GetLabel())
		}
	}
}

// descriptions reads what a registry may ever show: labels by name.
func descriptions(registry *prometheus.Registry) map[string]string {
	to := make(chan *prometheus.Desc)
	go func() {
		defer close(to)
		registry.Describe(to)
	}()
	name := regexp.MustCompile(`fqName: "([^"]*)"`)
	constant := regexp.MustCompile(`constLabels: \{([^}]*)\}`)
	variable := regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
	out := map[string]string{}
	for desc := range to {
		var labels []string
		text := desc.String()
		for _, group := range []*regexp.Regexp{constant, variable} {
			for label := range strings.SplitSeq(group.FindStringSubmatch(text)[1], ",") {
				if label, _, _ = strings.Cut(label, "="); label != "" {
					labels = append(labels, label)
				}
			}
		}
		slices.Sort(labels)
		out[name.FindStringSubmatch(text)[1]] = strings.Join(labels, ", ")
	}
	return out
}

// TestTheTableOfMetricsIsTrue holds docs/metrics.md to what a manager registers
// and, where there is data, to its type.
func TestTheTableOfMetricsIsTrue(t *testing.T) {
	t.Parallel()
	registry := measured(t)
	families, registered := gather(t, registry), descriptions(registry)
	data, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| ([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		name, kind, labels := m[1], m[2], m[3]
		got, ok := registered[name]
		if !ok {
			t.Errorf("docs/metrics.md lists %s, which no manager registers", name)
			continue
		}
		delete(registered, name)
		listed := strings.Split(labels, ", ")
		slices.Sort(listed)
		if sorted := strings.Join(listed, ", "); sorted != got && (got != "" || labels != "none") {
			t.Errorf("docs/metrics.md gives %s the labels %q, but it has %q", name, labels, got)
		}
		if f := families[name]; f != nil && !strings.EqualFold(f.GetType().String(), kind) {
			t.Errorf("docs/metrics.md calls %s a %s, but it is a %s", name, kind, f.GetType())
		}
	}
	for name, labels := range registered {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("docs/metrics.md lacks %s (%s)", name, labels)
		}
	}
}
