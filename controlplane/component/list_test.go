// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// rules is a strategy that names the parts that made it.
type rules struct{ by string }

func (rules) Default(resource.Object) ([]string, error)                 { return nil, nil }
func (rules) Prepare(context.Context, resource.Object, resource.Object) {}
func (rules) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}
func (rules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

func wrapped(by string) func(resource.Strategy) resource.Strategy {
	return func(s resource.Strategy) resource.Strategy { return rules{s.(rules).by + " " + by} }
}

func describe(group, plural string) *resource.Resource {
	return &resource.Resource{
		Names:   resource.Names{Group: group, Plural: plural, Singular: strings.TrimSuffix(plural, "s"), Kind: plural, ListKind: plural + "List"},
		Storage: resource.Storage{Bucket: plural, Version: "v1"},
		Versions: []resource.Version{{Name: "v1", Strategy: rules{"own"}, Subresources: []resource.Subresource{
			{Name: "status", Strategy: rules{"status"}},
		}}},
	}
}

func TestListExtendsCopiesOfResources(t *testing.T) {
	t.Parallel()
	var ran []string
	committed := func(name string, err error) func(context.Context, resource.Change) error {
		return func(context.Context, resource.Change) error {
			ran = append(ran, name)
			return err
		}
	}
	shared := describe("example.com", "gears")
	shared.Committed = committed("own", nil)
	refused := errors.New("refused")
	list := component.List{
		{Name: "kinds", Resources: []*resource.Resource{shared}},
		{Name: "a", Extend: []component.Extension{{
			Resource: "gears.example.com", Strategy: wrapped("a"), Status: wrapped("a"), Committed: committed("a", refused),
			Subresources: []resource.Subresource{{Name: "scale"}},
		}}},
		{Name: "b", Extend: []component.Extension{{Resource: "gears.example.com", Strategy: wrapped("b"), Committed: committed("b", nil)}}},
	}
	all, err := list.Resources()
	if err != nil || len(all) != 1 {
		t.Fatalf("%d resources, %v", len(all), err)
	}
	v := &all[0].Versions[0]
	if v.Strategy != (rules{"own a b"}) || len(v.Subresources) != 2 || v.Subresources[0].Strategy != (rules{"status a"}) || v.Subresources[1].Name != "scale" {
		t.Errorf("extended to %+v", v)
	}
	if err := all[0].Committed(t.Context(), resource.Change{}); !errors.Is(err, refused) || !slices.Equal(ran, []string{"own", "a"}) {
		t.Errorf("after a change %q ran: %v", ran, err)
	}
	if v := &shared.Versions[0]; v.Strategy != (rules{"own"}) || len(v.Subresources) != 1 || v.Subresources[0].Strategy != (rules{"status"}) {
		t.Errorf("the shared resource has become %+v", v)
	}
}

func TestListRefusesResourcesThatDoNotFit(t *testing.T) {
	t.Parallel()
	gears := describe("", "gears")
	for want, list := range map[string]component.List{
		`part "b": another part has the resource gears`: {
			{Name: "a", Resources: []*resource.Resource{gears}}, {Name: "b", Resources: []*resource.Resource{gears}},
		},
		`part "a" extends gears.example.com, which no part has`: {
			{Name: "a", Resources: []*resource.Resource{gears}, Extend: []component.Extension{{Resource: "gears.example.com"}}},
		},
	} {
		if _, err := list.Resources(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// link is an admission that notes that it was called.
type link struct {
	name   string
	called *[]string
}

func (l link) Admit(context.Context, *resource.AdmissionRequest) error {
	*l.called = append(*l.called, l.name)
	return nil
}
func (l link) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

func TestListAdmissionIsAChainInOrder(t *testing.T) {
	t.Parallel()
	var called []string
	list := component.List{
		component.Plugin("First", link{"First", &called}),
		component.Plugin("Gears", link{"Gears", &called}, "gears.example.com"),
		{Name: "kinds"},
		component.Plugin("Last", link{"Last", &called}),
	}.After("First", component.Plugin("Second", link{"Second", &called}, "gears.example.com", "wheels"))
	admit := func(group, plural string) string {
		called = nil
		r := &resource.AdmissionRequest{Request: &resource.Request{Resource: describe(group, plural)}}
		if err := list.Admission(nil).Admit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return strings.Join(called, " ")
	}
	for plural, want := range map[string]string{"gears.example.com": "First Second Gears Last", "gears": "First Last", "wheels": "First Second Last"} {
		name, group, _ := strings.Cut(plural, ".")
		if got := admit(group, name); got != want {
			t.Errorf("%s: %s, want %s", plural, got, want)
		}
	}
	repeats := slices.Clone(list)
	repeats[2].Repeats = true // Gears
	chain := repeats.Admission(nil).(resource.Admissions)
	if first, ok := chain[0].(resource.Repeated); !ok || len(first.Admissions) != 3 || len(chain) != 2 {
		t.Errorf("plugins up to one that repeats are %+v", chain)
	}
	if got := list.PluginNames(); !slices.Equal(got, []string{"First", "Second", "Gears", "Last"}) {
		t.Errorf("the plugins are %q", got)
	}
	if (component.List{{Name: "kinds"}}).Admission(nil) != nil {
		t.Error("a list without plugins has an admission")
	}
}

func TestListWithoutRefusesWhatIsNotOptional(t *testing.T) {
	t.Parallel()
	list := component.List{{Name: "kinds"}, component.Plugin("A", link{}), component.Plugin("B", link{})}
	left, err := list.Without("A")
	if err != nil || len(left) != 2 || left[1].Name != "B" || len(list) != 3 {
		t.Errorf("without A there are %d parts of %d: %v", len(left), len(list), err)
	}
	for _, name := range []string{"kinds", "C"} {
		if _, err := list.Without("A", name); err == nil || err.Error() != `there is no "`+name+`" to leave out; there are A, B` {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestListBootsAndLoadsEveryPart(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	object := func(name string) component.Component {
		return component.Component{
			Name: name,
			Boot: func(storage.View, time.Time) ([]storage.Write, []step.Request, error) {
				return []storage.Write{{Key: storage.Key{Name: name}}}, []step.Request{{Path: name}}, nil
			},
			Load: func(context.Context) error { return errors.New(name) },
		}
	}
	list := component.List{object("a"), {Name: "kinds"}, object("b")}
	writes, requests, err := list.Boot(nil, time.Time{})
	if err != nil || len(writes) != 2 || writes[1].Key.Name != "b" || len(requests) != 2 || requests[0].Path != "a" {
		t.Errorf("%v, %v, %v", writes, requests, err)
	}
	if err := list.Load(t.Context()); err == nil || err.Error() != "a\nb" {
		t.Errorf("loaded with %v", err)
	}
	list[1].Boot = func(storage.View, time.Time) ([]storage.Write, []step.Request, error) { return nil, nil, broken }
	if _, _, err := list.Boot(nil, time.Time{}); !errors.Is(err, broken) || !strings.Contains(err.Error(), `"kinds"`) {
		t.Errorf("a part that fails: %v", err)
	}
}

// named is a controller that has a name and nothing else.
type named struct {
	step.Controller
	name string
}

func (n named) Name() string { return n.name }

func TestListCollectsWhatItsPartsHave(t *testing.T) {
	t.Parallel()
	var ran []string
	run := func(name string, err error) func(context.Context) error {
		return func(context.Context) error {
			ran = append(ran, name)
			return err
		}
	}
	broken := errors.New("broken")
	list := component.List{
		{Name: "a", Follows: []string{"as"}, Lead: run("lead a", nil), Close: func() { ran = append(ran, "close a") }, Health: component.Hooks(nil, "x", "y")},
		component.Controller(named{name: "c1"}),
		{Name: "b", OnEachServer: true, Controller: named{name: "c2"}, Follows: []string{"bs", "cs"}},
		component.ServerController(named{name: "c3"}),
		{Name: "z", Lead: run("lead z", broken), Close: func() { ran = append(ran, "close z") }, Health: component.Hooks(nil, "z")},
		{Name: "end", Lead: run("lead end", nil)},
	}
	names := func(l component.List) string {
		var out []string
		for i := range l {
			out = append(out, l[i].Name)
		}
		return strings.Join(out, " ")
	}
	each, leader := list.OnEachServer()
	if names(each) != "b" || names(leader) != "a c1 c3 z end" {
		t.Errorf("on each server run %s, on the leader %s", names(each), names(leader))
	}
	var controllers, checks []string
	for _, c := range list.Controllers() {
		controllers = append(controllers, c.Name())
	}
	for _, c := range list.Health() {
		checks = append(checks, c.Name)
	}
	for what, tt := range map[string][2][]string{
		"controllers":              {{"c1", "c2", "c3"}, controllers},
		"controllers to leave out": {{"c1"}, list.ControllerNames()},
		"buckets":                  {{"as", "bs", "cs"}, list.Follows()},
		"checks":                   {{"poststarthook/x", "poststarthook/y", "poststarthook/z"}, checks},
	} {
		if !slices.Equal(tt[0], tt[1]) {
			t.Errorf("%s are %q, want %q", what, tt[1], tt[0])
		}
	}
	if err := list.Lead(t.Context()); !errors.Is(err, broken) || err.Error() != `part "z": broken` {
		t.Errorf("a part that cannot lead: %v", err)
	}
	list.Close()
	if want := []string{"lead a", "lead z", "close a", "close z"}; !slices.Equal(ran, want) {
		t.Errorf("what ran is %q, want %q", ran, want)
	}
	defer func() {
		if got := recover(); got != "part: there is no part y to insert others after" {
			t.Errorf("a part after one that is not there: %v", got)
		}
	}()
	list.After("y")
}

func TestCatalogFollowsTheServer(t *testing.T) {
	t.Parallel()
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	catalog := component.NewCatalog(server)
	if _, ok := catalog.Kind("example.com/v1", "gears"); ok {
		t.Error("an empty server serves gears")
	}
	if err := (component.List{{Name: "kinds", Resources: []*resource.Resource{describe("example.com", "gears")}}}).Install(server); err != nil {
		t.Fatal(err)
	}
	r, ok := catalog.Kind("example.com/v1", "gears")
	if b, found := catalog.Bucket("gears"); !ok || !found || !reflect.DeepEqual(b, r) || r.Plural != "gears" || r.Version != "v1" {
		t.Errorf("%+v, %t; by bucket %+v, %t", r, ok, b, found)
	}
	server.Remove("example.com", "gears")
	if len(slices.Collect(catalog.Resources())) != 0 {
		t.Error("what was removed is in the catalog")
	}
}

func TestDepsMeasureAndLogOnlyWhereThereIsSomethingToReceiveIt(t *testing.T) {
	t.Parallel()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "steer_test_total"})
	var none component.Deps
	none.Measure(counter)
	none.Logger().Info("nothing")
	registry := prometheus.NewRegistry()
	some := component.Deps{Metrics: registry, Log: slog.New(slog.DiscardHandler)}
	some.Measure(counter)
	if families, err := registry.Gather(); err != nil || len(families) != 1 {
		t.Errorf("%d families, %v", len(families), err)
	}
	if some.Logger() != some.Log {
		t.Error("another logger than the one given")
	}
}
