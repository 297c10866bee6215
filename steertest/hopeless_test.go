// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// doomed does to ConfigMaps what data.does says.
type doomed struct {
	client.Client
	release <-chan struct{}
}

func (d *doomed) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	switch cm.Data["does"] {
	case "send what is invalid":
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: "UPPER"}}
		return controller.Done(), d.Create(ctx, pod)
	case "refuse":
		return controller.Done(), controller.Terminal(errors.New("no such size"))
	case "block":
		<-d.release
	}
	return controller.Done(), nil
}

func doomedOptions(d *doomed) steertest.Options {
	return steertest.Options{Timeout: time.Minute, Role: steertest.Administrator, Operator: steer.Operator{
		Name: "doomed", Scheme: steer.Scheme{corev1.AddToScheme}, Setup: func(_ context.Context, m *manager.Manager) error {
			d.Client = m.Client()
			return controller.Add(m, d)
		},
	}}
}

func doing(name, what string) *corev1.ConfigMap {
	cm := configMap(name)
	cm.Data = map[string]string{"does": what}
	return cm
}

func TestAWaitEndsAtOnceForAnErrorThatNoRetryMends(t *testing.T) {
	t.Parallel()
	never := func(cm *corev1.ConfigMap) bool { return cm.Data["never"] != "" }
	for what, want := range map[string]string{
		"send what is invalid": "no retry mends the error of the operator (Options.Mistakes waits nevertheless): controller configmap, ConfigMap default/a: ",
		"refuse":               "ConfigMap default/a: terminal error: no such size",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := fails(t, func(tb testing.TB) {
					env := steertest.New(tb, doomedOptions(&doomed{}))
					env.Create(doing("a", what))
					steertest.Wait(env, "default/a", never)
				})
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s of virtual time", took)
				}
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			})
		})
	}
}

func TestAWaitGoesOnWhereTheErrorMayBeMended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := steertest.New(t, doomedOptions(&doomed{}))
		env.Create(doing("a", "refuse"))
		env.Create(doing("b", ""))
		// Another object, and a change that the test is about to make.
		changed := make(chan error, 1)
		go func() {
			time.Sleep(5 * time.Second) // virtual
			changed <- env.Client.Patch(env.Context(), configMap("b"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"done":"yes"}}`)))
		}()
		steertest.Wait(env, "default/b", func(cm *corev1.ConfigMap) bool { return cm.Data["done"] != "" })
		if err := <-changed; err != nil {
			t.Error(err)
		}
		// What has come counts, whatever the operator says.
		steertest.Wait(env, "default/a", func(cm *corev1.ConfigMap) bool { return cm.Data["does"] == "refuse" })
	})
}

func TestAWaitThatEndsNamesTheReconcileThatHasNotEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, doomedOptions(&doomed{release: release}))
			tb.Cleanup(func() { close(release) })
			env.Create(doing("a", "block"))
			steertest.Wait(env, "default/a", func(cm *corev1.ConfigMap) bool { return cm.Data["never"] != "" })
		})
		for _, want := range []string{"this has not ended: configmap default/a: ", "running for 1m0s at ", "steertest/hopeless_test.go:38", "doomed).Reconcile("} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
	})
}

func TestAFailedTestShowsTheAssertionThenALittle(t *testing.T) {
	t.Parallel()
	message, logs := failsWith(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Role: steertest.Administrator, Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, restless{})
		}, Timeout: time.Second})
		for _, name := range []string{"a", "b", "c"} {
			env.Create(configMap(name))
		}
		steertest.Wait(env, "default/a", func(cm *corev1.ConfigMap) bool { return cm.Data["never"] != "" })
	})
	if !strings.HasPrefix(message, "steertest: wait for ConfigMap default/a") {
		t.Errorf("the message is %s", message)
	}
	if n := strings.Count(logs, "\n"); n > 25 {
		t.Errorf("%d lines below it:\n%s", n, logs)
	}
	if strings.Count(logs, "configmap default/b: ") != 1 || !strings.Contains(logs, " times)\n") {
		t.Errorf("equal reconciles are not one line:\n%s", logs)
	}
}
