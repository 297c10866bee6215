// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// ruleFile is a PrometheusRule.
type ruleFile struct {
	Spec struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
}

// board is what Grafana reads.
type board struct {
	UID    string
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

// monitoring are the alerts and the board of an operator, as they are written.
func monitoring(t *testing.T, name string) (rules ruleFile, shown board) {
	t.Helper()
	objects, err := deploy.Monitoring(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		text, err := o.YAML()
		if err != nil {
			t.Fatal(err)
		}
		var into any = &rules
		var config corev1.ConfigMap
		if o.Kind == "ConfigMap" {
			into = &config
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
		for _, text := range config.Data {
			if err := json.Unmarshal([]byte(text), &shown); err != nil {
				t.Fatal(err)
			}
		}
	}
	return rules, shown
}

// served are the labels of the metrics of a manager, by name, as docs/metrics.md lists them,
// which a test of package manager holds to the registry.
func served(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	target := []string{"job", "instance"}
	out := map[string][]string{"process_resident_memory_bytes": target, "process_cpu_seconds_total": target} // of Go's client
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| \\w+ \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		labels := slices.Clone(target)
		for label := range strings.SplitSeq(row[2], ", ") {
			if label == "namespace" { // the target has one, too
				label = "exported_namespace"
			}
			labels = append(labels, label)
		}
		out[row[1]] = labels
	}
	if len(out) < 30 {
		t.Fatalf("docs/metrics.md lists %d metrics: its table is read wrongly", len(out))
	}
	return out
}

var (
	groupings = regexp.MustCompile(`\bby \(([^)]*)\)`)
	selectors = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matchers  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
)

// notServed says what of an expression no operator serves: a metric or a label; empty: it
// serves all.
func notServed(expr string, metrics map[string][]string) string {
	all := selectors.FindAllStringSubmatch(expr, -1)
	if len(all) == 0 {
		return "it selects nothing"
	}
	for _, s := range all {
		labels, ok := metrics[s[1]]
		if base, isBucket := strings.CutSuffix(s[1], "_bucket"); !ok && isBucket {
			labels, ok = metrics[base]
			labels = append(slices.Clone(labels), "le")
		}
		if !ok {
			return "no metric " + s[1]
		}
		asked := matchers.FindAllStringSubmatch(s[2], -1)
		if len(asked) == 0 || asked[0][1] != "job" {
			return s[1] + " of all jobs"
		}
		for _, m := range asked {
			if !slices.Contains(labels, m[1]) {
				return fmt.Sprintf("%s has no label %s", s[1], m[1])
			}
		}
		for _, g := range groupings.FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(g[1], ", ") {
				if !slices.Contains(labels, label) {
					return fmt.Sprintf("%s has no label %s", s[1], label)
				}
			}
		}
	}
	return ""
}

// TestAlertsAndBoardAskForMetricsThatAreServed holds names and labels to those of a manager;
// oracle/prometheus evaluates the expressions.
func TestAlertsAndBoardAskForMetricsThatAreServed(t *testing.T) {
	t.Parallel()
	rules, shown := monitoring(t, "guestbook")
	metrics := served(t)
	placeholders := regexp.MustCompile(`\$labels\.([a-z_]+)`)
	legend := regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	expressions := 0
	check := func(of, expr, text string, names *regexp.Regexp) {
		expressions++
		if missing := notServed(expr, metrics); missing != "" {
			t.Errorf("%s: %s: %s", of, expr, missing)
		}
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			by := groupings.FindStringSubmatch(expr)
			if by != nil && !slices.Contains(strings.Split(by[1], ", "), m[1]) && !strings.Contains(expr, "histogram_quantile") {
				t.Errorf("%s: %q names %s, which %s leaves out", of, text, m[1], expr)
			}
		}
	}
	for _, r := range rules.Spec.Groups[0].Rules {
		check(r.Alert, r.Expr, r.Annotations["summary"], placeholders)
	}
	for _, p := range shown.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr, target.LegendFormat, legend)
		}
	}
	if expressions < 20 {
		t.Errorf("there are %d expressions", expressions)
	}
	for _, wrong := range []string{
		`no_such_metric{job="x"}`, `workqueue_depth`, `workqueue_depth{name="x"}`, `sum by (shard) (workqueue_depth{job="x"})`, `workqueue_depth{job="x", shard="y"}`,
	} {
		if notServed(wrong, metrics) == "" {
			t.Errorf("%s passes: the test proves nothing", wrong)
		}
	}
}

// TestEveryAlertSaysWhatToDo: docs/metrics.md has a part for each, to which the alert leads,
// and none for others.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^### (Operator\w+)$`).FindAllStringSubmatch(string(page), -1) {
		told[heading[1]] = true
	}
	rules, _ := monitoring(t, "guestbook")
	for _, r := range rules.Spec.Groups[0].Rules {
		if !told[r.Alert] {
			t.Errorf("docs/metrics.md has no heading %s", r.Alert)
		}
		delete(told, r.Alert)
		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/metrics.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Labels["operator"] != "guestbook" || r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning" || !strings.HasPrefix(r.Annotations["summary"], "guestbook: ") {
			t.Errorf("%s: labels %v, annotations %v", r.Alert, r.Labels, r.Annotations)
		}
	}
	for name := range told {
		t.Errorf("docs/metrics.md has %s, and there is no such alert", name)
	}
}

func TestBoardsOfTwoOperatorsAreTwo(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 11)
	seen := map[string]string{}
	for _, name := range []string{"guestbook", "shop", long + "one", long + "two"} {
		_, shown := monitoring(t, name)
		if len(shown.UID) > 40 || seen[shown.UID] != "" {
			t.Errorf("%s has the uid %q, as has %q", name, shown.UID, seen[shown.UID])
		}
		seen[shown.UID] = name
	}
}

// TestAdditionsAreThereOnRequest, whether steer.yaml or a flag asks for them.
func TestAdditionsAreThereOnRequest(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	made := func(with ...string) map[string]string {
		t.Helper()
		p, settings, err := deploy.ReadProject(dir, "", with...)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := deploy.Objects(t.Context(), dir, p, settings)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, o := range objects {
			text, err := o.YAML()
			if err != nil {
				t.Fatal(err)
			}
			out[o.Kind+" "+o.Name] = string(text)
		}
		return out
	}
	const operator = "Deployment guestbook-controller-manager"
	plain := made()
	keeps := func(text string) bool {
		t.Helper()
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		args, mounts := pod.Containers[0].Args, pod.Containers[0].VolumeMounts
		return slices.Contains(args, "--pprof-bind-address=127.0.0.1:6060") && len(pod.Volumes) == 1 && pod.Volumes[0].EmptyDir != nil &&
			len(mounts) == 1 && mounts[0].Name == pod.Volumes[0].Name && slices.Contains(args, "--record-dir="+mounts[0].MountPath)
	}
	for addition, want := range map[string][]string{
		deploy.WithRecords: {"Role guestbook-records-reader"},
		deploy.WithGrafana: {"ConfigMap guestbook-board"},
		deploy.WithAlerts:  {"PrometheusRule guestbook-alerts", "ServiceMonitor guestbook-controller-manager-metrics-monitor"},
	} {
		got := made(addition)
		if records := addition == deploy.WithRecords; keeps(got[operator]) != records || (got[operator] != plain[operator]) != records {
			t.Errorf("%s: the Deployment is\n%s", addition, got[operator])
		}
		for name := range plain {
			delete(got, name)
		}
		if added := slices.Sorted(maps.Keys(got)); !slices.Equal(added, want) {
			t.Errorf("%s adds %v, want %v", addition, added, want)
		}
	}
	file := filepath.Join(dir, deploy.SettingsFile)
	if err := os.WriteFile(file, []byte("with: [records, grafana, alerts]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := made(); len(got) != len(plain)+4 {
		t.Errorf("steer.yaml asks for all, and there are %d objects more", len(got)-len(plain))
	}
	if _, _, err := deploy.ReadProject(dir, "", "records", "alarms"); err == nil || err.Error() != `--with "alarms" is not known: give some of records, grafana, alerts, with commas between them` {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(file, []byte("image: x\nwith: [alarms]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := project.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deploy.ReadSettings(dir, p); err == nil || !strings.Contains(err.Error(), `steer.yaml:2: with: "alarms" is not known: give some of [records, grafana, alerts]`) {
		t.Errorf("got %v", err)
	}
}
