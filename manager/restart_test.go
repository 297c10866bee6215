// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

const (
	sizeOf  = "example.com/size"  // of an app: how many parts it wants
	builtAs = "example.com/built" // of a part: that it is built; of an app: how many are
)

// three are the controllers of the test: one makes the parts of an app, one
// builds parts, one tells on the app how many are built.
type three struct{ m *manager.Manager }

func (c three) makeParts(set controller.Children[*corev1.Secret]) controller.Func[*corev1.ConfigMap] {
	return func(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
		if app.Annotations[sizeOf] == "" {
			return controller.Done(), nil // not an app
		}
		size, err := strconv.Atoi(app.Annotations[sizeOf])
		if err != nil {
			return controller.Result{}, err
		}
		var parts []*corev1.Secret
		for i := range size {
			parts = append(parts, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(app.Name, "-", i)}})
		}
		return controller.Done(), set.Apply(ctx, app, parts)
	}
}

func (c three) build(ctx context.Context, part *corev1.Secret) (controller.Result, error) {
	if part.Annotations[builtAs] == "" && metav1.GetControllerOf(part) != nil {
		return controller.Done(), c.annotate(ctx, part, "yes")
	}
	return controller.Done(), nil
}

func (c three) count(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	var parts corev1.SecretList
	if err := c.m.Client().List(ctx, &parts, client.InNamespace(app.Namespace)); err != nil {
		return controller.Result{}, err
	}
	built := 0
	for _, part := range parts.Items {
		if metav1.IsControlledBy(&part, app) && part.Annotations[builtAs] != "" {
			built++
		}
	}
	if text := strconv.Itoa(built); app.Annotations[sizeOf] != "" && app.Annotations[builtAs] != text {
		return controller.Done(), c.annotate(ctx, app, text)
	}
	return controller.Done(), nil
}

func (c three) annotate(ctx context.Context, obj client.Object, value string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, builtAs, value))
	return client.IgnoreNotFound(c.m.Client().Patch(ctx, obj.DeepCopyObject().(client.Object), patch))
}

func (c three) add() error {
	owner := controller.Map(func(_ context.Context, part *corev1.Secret) []controller.Request {
		if ref := metav1.GetControllerOf(part); ref != nil {
			return []controller.Request{{NamespacedName: client.ObjectKey{Namespace: part.Namespace, Name: ref.Name}}}
		}
		return nil
	})
	for _, add := range []func() error{
		func() error {
			return controller.Add(c.m, c.makeParts(controller.Children[*corev1.Secret]{}), controller.Name("apps"),
				controller.Owns[*corev1.Secret](), controller.Concurrency(4))
		},
		func() error {
			return controller.Add(c.m, controller.Func[*corev1.Secret](c.build), controller.Name("parts"), controller.Concurrency(2))
		},
		func() error {
			return controller.Add(c.m, controller.Func[*corev1.ConfigMap](c.count), controller.Name("summaries"),
				controller.Watches[*corev1.Secret](owner), controller.Concurrency(2))
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// TestThreeControllersKilledAndRestartedUnderLoadConverge kills a manager again
// and again, without a word of farewell, while a user changes what is wanted.
func TestThreeControllersKilledAndRestartedUnderLoadConverge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { killAndRestart(t, seed) })
		})
	}
}

func killAndRestart(t *testing.T, seed uint64) {
	const apps, kills = 6, 5
	random := rand.New(rand.NewPCG(seed, 3))
	env := newEnv(t, corev1.AddToScheme)
	name := func(i int) string { return fmt.Sprint("app-", i) }
	for i := range apps {
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name(i), Annotations: map[string]string{sizeOf: "1"}}})
	}
	start := func() (kill, stop func()) {
		cfg := rest.CopyConfig(env.Config)
		way := &gate{next: &network{next: env.Config.Transport, random: rand.New(rand.NewPCG(random.Uint64(), 1))}, refuse: expired}
		cfg.Transport = way
		m := newOperator(t, cfg, manager.Options{})
		if err := (three{m}).add(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		stop = func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		return func() { way.shut(); stop() }, stop
	}
	over := make(chan struct{})
	var user sync.WaitGroup
	user.Go(func() {
		wishes := rand.New(rand.NewPCG(seed, 5))
		for {
			app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name(wishes.IntN(apps))}}
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, sizeOf, wishes.IntN(5)))
			if err := env.Client.Patch(env.Context(), app, patch); err != nil {
				t.Error(err)
			}
			select {
			case <-over:
				return
			case <-time.After(150 * time.Millisecond):
			}
		}
	})
	for range kills {
		kill, _ := start()
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		kill()
	}
	_, stop := start()
	time.Sleep(2 * time.Second)
	close(over)
	user.Wait()
	time.Sleep(5 * time.Minute)
	wanted := 0
	for i := range apps {
		var app corev1.ConfigMap
		if err := env.Client.Get(env.Context(), steertest.Key("default/"+name(i)), &app); err != nil {
			t.Fatal(err)
		}
		size, _ := strconv.Atoi(app.Annotations[sizeOf])
		wanted += size
		if app.Annotations[builtAs] != app.Annotations[sizeOf] {
			t.Errorf("%s wants %s parts and says that %s are built", app.Name, app.Annotations[sizeOf], app.Annotations[builtAs])
		}
	}
	var parts corev1.SecretList
	if err := env.Client.List(env.Context(), &parts, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if len(parts.Items) != wanted {
		t.Errorf("%d parts, want %d", len(parts.Items), wanted)
	}
	stop()
}
