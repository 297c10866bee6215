// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// copier is an operator that copies the value of config maps of one role to those of the
// next. It hands out its recorder.
func copier(name, from, to string, recorder chan<- *trace.Recorder) steer.Operator {
	return steer.Operator{
		Name: name, Scheme: steer.Scheme{corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			recorder <- m.Recorder()
			reconcile := func(ctx context.Context, c *corev1.ConfigMap) (controller.Result, error) {
				return controller.Done(), m.Client().Apply(ctx, mapOf(to, strings.TrimPrefix(c.Name, from+"-"), c.Data["value"]), client.FieldOwner(name), client.ForceOwnership)
			}
			return controller.Add(m, controller.Func[*corev1.ConfigMap](reconcile), controller.Name(name),
				controller.Where(func(e controller.Event[*corev1.ConfigMap]) bool { return e.Object.Labels["role"] == from }))
		},
	}
}

func mapOf(role, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + name, Namespace: "default", Labels: map[string]string{"role": role}},
		Data:       map[string]string{"value": value},
	}
}

// writes waits for the record of the write that made a revision.
func writes(follow func(func(trace.Record) bool), seen *[]trace.Record, name, revision string) {
	made := func(r trace.Record) bool {
		return slices.ContainsFunc(r.Writes, func(a trace.Access) bool { return a.Name == name && a.Revision == revision })
	}
	if slices.ContainsFunc(*seen, made) {
		return
	}
	for r := range follow {
		if *seen = append(*seen, r); made(r) {
			return
		}
	}
}

// TestWhyNamesTheRightChain of 200 changes by three users, which two operators carry on.
func TestWhyNamesTheRightChain(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: mapsScheme(t)})
	right, unknown := changes(t, env.Config)
	if right != 200 || unknown != 0 {
		t.Errorf("%d chains are right, and %d end early, of 200", right, unknown)
	}
}

// TestWhyOnKubeAPIServerNamesTheRightChain or says that it is not known: there are no notes,
// and the field manager is that of managedFields, whose times are of seconds.
func TestWhyOnKubeAPIServerNamesTheRightChain(t *testing.T) {
	t.Parallel()
	right, unknown := changes(t, kubeapiserver.Server(t))
	t.Logf("of 200 chains %d are right, %d end with what is not known", right, unknown)
	if right < 120 || right+unknown != 200 {
		t.Errorf("%d of 200 chains are right, want 60 %% at least", right)
	}
}

func mapsScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// changes makes 200 on a server, and counts the chains that are right up to the user's tool,
// and those that are right as far as they go and say what is not known. A wrong one fails the
// test.
func changes(t *testing.T, config *rest.Config) (right, unknown int) {
	t.Helper()
	scheme := mapsScheme(t)
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	recorders, ended := make(chan *trace.Recorder, 1), make(chan error, 2)
	dirs := []string{t.TempDir(), t.TempDir()}
	var follow []func(func(trace.Record) bool)
	for i, op := range []steer.Operator{copier("first", "source", "middle", recorders), copier("second", "middle", "end", recorders)} {
		op.Config = rest.CopyConfig(config)
		op.Config.QPS = -1
		go func() {
			ended <- steer.Run(ctx, []string{"--health-probe-bind-address=0", "--zap-log-level=panic", "--record-dir=" + dirs[i]}, op)
		}()
		follow = append(follow, (<-recorders).Follow(ctx))
	}
	users := map[string]client.Client{}
	for _, name := range []string{"ann", "bob", "cy"} {
		cfg := rest.CopyConfig(config)
		cfg.QPS = -1
		cfg.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
		if users[name], err = client.New(cfg, client.Options{Scheme: scheme, FieldOwner: "tool-of-" + name}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := versions.Connect(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := make([][]trace.Record, 2)
	for n := range 200 {
		object, user, value := fmt.Sprint(random.IntN(5)), []string{"ann", "bob", "cy"}[random.IntN(3)], fmt.Sprint("value-", n)
		source := mapOf("source", object, value)
		if err := users[user].Apply(t.Context(), source, client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		isNew := func(c *corev1.ConfigMap) bool { return !await.Gone(c) && c.Data["value"] == value }
		end, middle := awaited(t, admin, "end-"+object, isNew), awaited(t, admin, "middle-"+object, isNew)
		writes(follow[0], &seen[0], middle.Name, middle.ResourceVersion)
		writes(follow[1], &seen[1], end.Name, end.ResourceVersion)
		facts := &chain.Facts{Server: s, Plural: s.Plural, Records: (&records{all: slices.Concat(seen...), known: map[trace.Object][]trace.Record{}}).about}
		facts.Notes, facts.NoNotes = s.Notes(t.Context())
		answer, err := facts.Why(t.Context(), trace.Object{Kind: "ConfigMap", Namespace: "default", Name: end.Name}, "data.value")
		if err != nil {
			t.Fatal(err)
		}
		got := told(answer.Step)
		want := []string{end.ResourceVersion + " by second", middle.ResourceVersion + " by first", source.ResourceVersion + " by tool-of-" + user}
		if facts.NoNotes == "" {
			want[2] += ", user " + user
		} else {
			want[2] += ", user "
		}
		switch short := len(got) > 0 && !strings.Contains(got[len(got)-1], "tool-of-"); {
		case slices.Equal(got, want):
			right++
		case short && len(got) == 3 && slices.Equal(got[:2], want[:2]) && got[2] == source.ResourceVersion+" by , user " && strings.Contains(answer.String(), "not known: "):
			unknown++
		default:
			t.Errorf("change %d: %q, not %q", n, got, want)
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	rec, err := openRecords(t.Context(), dirs, nil, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if got := rec.about(trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "end-0"}); len(got) < 10 {
		t.Errorf("%d records of end-0 are in the files", len(got))
	}
	return right, unknown
}

// awaited waits for the state of a config map.
func awaited(t *testing.T, c client.Client, name string, condition func(*corev1.ConfigMap) bool) *corev1.ConfigMap {
	t.Helper()
	got, err := await.Object(t.Context(), c, client.ObjectKey{Namespace: "default", Name: name}, condition)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// told is the chain that answers for the value, from the last writer to the first.
func told(s *chain.Step) (out []string) {
	for s != nil {
		line := s.Revision + " by " + s.Manager + ", user " + s.User
		if s.Reconcile != nil {
			line = s.Revision + " by " + s.Reconcile.Controller
		}
		out = append(out, line)
		because := s.Because
		s = nil
		for _, c := range because {
			for _, w := range c.Writes {
				s = w // the newest
			}
		}
	}
	return out
}

func TestArgumentsAreThoseOfKubectl(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	s, err := versions.Connect(t.Context(), env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deploy", "deployment", "deployments", "Deployment", "deployments.apps", "deployment.v1.apps"} {
		if r, err := s.Resource(name); err != nil || r.GVK.Kind != "Deployment" {
			t.Errorf("%s: %v %v", name, r.GVK, err)
		}
	}
	if _, err := s.Resource("deployments.other"); err == nil {
		t.Error("a group is not looked at")
	}
	for _, name := range []string{"page", "page.v1"} {
		c := mapOf(name, "x", "v")
		c.Name = name
		if err := env.Client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for argument, want := range map[string]string{
		"page": "page ", "page.data.value": "page data.value", "page.v1": "page.v1 ", "page.v1.data.value": "page.v1 data.value",
		"page.metadata.labels[a.b/c]": "page metadata.labels[a.b/c]", "none.spec.x": "none spec.x",
	} {
		name, field, err := fieldOf(t.Context(), s, trace.Object{Kind: "ConfigMap", Namespace: "default", Name: argument})
		if got := name + " " + field; err != nil || got != want {
			t.Errorf("%s is read as %q, not %q: %v", argument, got, want, err)
		}
	}
	for _, args := range [][]string{nil, {"deploy"}, {"deploy/"}, {"/web"}, {"a", "b", "c"}, {"deploy/a/b"}} {
		if _, _, err := split(args); err == nil {
			t.Errorf("%q name an object", args)
		}
	}
}

func TestTheTreeIsOfTheNamespaceAndNamesWhatItMayNotList(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	owner := mapOf("owner", "a", "v")
	if err := env.Client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	child := mapOf("child", "a", "v")
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if err := env.Client.Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	tree := func(cfg *rest.Config) (*chain.Tree, error) {
		s, err := versions.Connect(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := &chain.Facts{Server: s, Plural: s.Plural, Records: (&records{known: map[trace.Object][]trace.Record{}}).about}
		return treeOf(t.Context(), f, trace.Object{Kind: "ConfigMap", Namespace: "default", Name: owner.Name})
	}
	got, err := tree(env.Config)
	if err != nil || got.String() != "ConfigMap default/owner-a\n└─ ConfigMap default/child-a\n" {
		t.Errorf("%v: %v", got, err)
	}
	powerless := rest.CopyConfig(env.Config)
	powerless.Impersonate = rest.ImpersonationConfig{UserName: "powerless", Groups: []string{"system:authenticated"}}
	if _, err := tree(powerless); err == nil || !strings.Contains(err.Error(), "a rule with the verb list on configmaps") {
		t.Error(err)
	}
	s, err := versions.Connect(t.Context(), powerless)
	if err != nil {
		t.Fatal(err)
	}
	if all, missing := s.All(t.Context(), "default"); len(all) != 0 || !slices.Contains(missing, "configmaps: there is no right to list them") {
		t.Errorf("%d objects, %q", len(all), missing)
	}
	if items, why := s.Notes(t.Context()); len(items) != 0 || !strings.Contains(why, "/steer.dev/writes") {
		t.Errorf("%d notes: %s", len(items), why)
	}
}

func TestRecordsOfAnySourceAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	object := trace.Object{Kind: "Pod", Namespace: "default", Name: "a"}
	line, err := json.Marshal(trace.Record{ID: trace.ID{Recorder: 1, Number: 1}, Object: object, Outcome: trace.Done})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content string
		found   int
		err     string
	}{
		"whole": {string(line) + "\n" + string(line[:len(line)-1]) + `,"retries":1,"id":"0000000000000001-2"}` + "\n", 2, ""},
		"twice": {string(line) + "\n" + string(line) + "\n", 1, ""},
		"cut":   {string(line) + "\n" + string(line[:20]), 0, "line 2"},
		"long":  {strings.Repeat("x", 2<<20), 0, "too long"},
		"empty": {"", 0, ""},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := openRecords(t.Context(), []string{file}, nil, func(error) {})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || len(rec.about(object)) != c.found:
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := openRecords(t.Context(), []string{filepath.Join(dir, "none")}, nil, func(error) {}); err == nil {
		t.Error("a file that is not there has records")
	}
}

// TestAFileOfAFailedTestIsASource in place of a server and of records.
func TestAFileOfAFailedTestIsASource(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	page := mapOf("page", "a", "first")
	if err := env.Client.Create(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	page.Data["value"] = "second"
	if err := env.Client.Update(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	s, err := versions.Connect(t.Context(), env.Config)
	if err != nil {
		t.Fatal(err)
	}
	file, err := s.Gather(t.Context(), 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	object := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: page.Name}
	file.Records = []trace.Record{{ID: trace.ID{Recorder: 1, Number: 1}, Controller: "pages", Object: object, Writes: []trace.Access{{Verb: trace.Update, Object: object, Revision: page.ResourceVersion}}}}
	name := filepath.Join(t.TempDir(), "left")
	out, err := os.Create(name)
	if err == nil {
		err = errors.Join(file.Write(out), out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(cmd *cobra.Command, args ...string) (string, error) {
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.SetArgs(append(args, "--from", name))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, c := range []struct {
		cmd  *cobra.Command
		args []string
		want string
	}{
		{NewHistory(), []string{"cm/page-a", "-p"}, `data.value: "first" -> "second"`},
		{NewWhy(), []string{"cm/page-a.data.value"}, "updated at " + page.ResourceVersion + " (data.value) by reconcile 0000000000000001-1 of pages"},
		{NewTree(), []string{"cm", "page-a"}, "ConfigMap default/page-a\n"},
	} {
		if got, err := run(c.cmd, c.args...); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s %v, want %q", c.cmd.Name(), c.args, got, err, c.want)
		}
	}
	if _, err := run(NewWhy(), "cm/page-a", "--context", "x"); err == nil || !strings.Contains(err.Error(), "leave them out") {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("no file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(NewWhy(), "cm/page-a"); err == nil || !strings.Contains(err.Error(), "no file of a failed test") {
		t.Error(err)
	}
}
