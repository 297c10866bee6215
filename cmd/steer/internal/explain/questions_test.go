// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/internal/walkthrough"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// TestThreeQuestionsAreAnswered as the page of docs shows, on faults that are made here.
func TestThreeQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	const page = "../../../../docs/why.md"
	blocks, err := walkthrough.Read(page)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, section, _ := strings.Cut(string(text), "## Three questions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	first := strings.Count(before, "\n") + 1
	last := first + strings.Count(section, "\n")
	file, dir := "", t.TempDir()
	synctest.Test(t, func(t *testing.T) { file = faults(t, dir) })
	commands := map[string]func() *cobra.Command{"why": NewWhy, "tree": NewTree}
	answered := 0
	for _, b := range blocks {
		if b.Kind != walkthrough.Console || b.Line < first || b.Line > last {
			continue
		}
		for _, c := range b.Commands() {
			args := strings.Fields(c.Text)[1:]
			cmd := commands[args[0]]()
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetArgs(append(args[1:], "--from", file))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Errorf("%s: %v", c.Text, err)
			}
			if !shown(c.Shown).MatchString(out.String()) {
				t.Errorf("%s: the page shows\n%s\nand it printed\n%s", c.Text, strings.Join(c.Shown, "\n"), out.String())
			}
			answered++
		}
	}
	if answered != 3 {
		t.Errorf("the page has %d of the questions", answered)
	}
}

// shown matches what a page shows: "..." stands for the rest of a line, and alone for any lines.
func shown(lines []string) *regexp.Regexp {
	var re strings.Builder
	re.WriteString("^")
	for _, line := range lines {
		if line == "..." {
			re.WriteString(`(?:.*\n)*?`)
			continue
		}
		re.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `\n`)
	}
	return regexp.MustCompile(re.String())
}

// faults makes an object that is reconciled every 10 s, a field that a user changes, and a
// Deployment whose Pods find no node. It returns the file of what happened.
func faults(t *testing.T, dir string) string {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme, appsv1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	var recorder *trace.Recorder
	env := steertest.New(t, steertest.Options{
		Scheme: scheme, Role: steertest.Administrator,
		Workloads: steertest.Workloads(workloads.Outcome{Selector: "app=web", Fate: workloads.Unschedulable}),
		Setup: func(_ context.Context, m *manager.Manager) error {
			recorder = m.Recorder()
			again := func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
				return controller.After(10 * time.Second), nil
			}
			return controller.Add(m, controller.Func[*corev1.ConfigMap](again), controller.Name("shop"),
				controller.Where(func(e controller.Event[*corev1.ConfigMap]) bool {
					return e.Type == cache.Added && e.Object.Name == "bakery"
				}))
		},
	})
	env.Settled() // the operator watches before anything is created
	bakery := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bakery", Namespace: "default"}, Data: map[string]string{"sells": "bread"}}
	env.Create(bakery)
	labels := map[string]string{"app": "web"}
	env.Create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web"}}}},
	}})
	time.Sleep(65 * time.Second) // of the bubble
	bakery.Data["sells"] = "cake"
	if err := env.AsUser("bob", "system:masters").Update(t.Context(), bakery, client.FieldOwner("tool-of-bob")); err != nil {
		t.Fatal(err)
	}
	env.Settled()
	line, err := versions.Leave(env.Config, dir, "questions", []*trace.Recorder{recorder})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(line)[3]
}
