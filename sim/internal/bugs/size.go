// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

// size changes a ConfigMap and then replaces the Pod that has read it. It decides by the
// ConfigMap whether there is anything to do, so that one that ends between the two leaves
// the old Pod for good: as rabbitmq/cluster-operator#782, nifikop#49 and casskop#370.
type size struct {
	client.Client
	mended bool
}

const sizeKey = "bugs.example.com/size"

// Reconcile writes the ConfigMap and replaces the Pod.
func (r size) Reconcile(ctx context.Context, db *v1.Database) (controller.Result, error) {
	want := strconv.Itoa(int(db.Spec.Size))
	key := client.ObjectKeyFromObject(db)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name}, Data: map[string]string{"size": want}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name, Annotations: map[string]string{sizeKey: want}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "database"}}},
	}
	if err := ensure(ctx, r.Client, db, config); err != nil {
		return controller.Result{}, err
	}
	var now corev1.ConfigMap
	if err := r.Get(ctx, key, &now); err != nil {
		return controller.Result{}, err
	}
	replace := now.Data["size"] != want
	if replace {
		now.Data["size"] = want
		if err := r.Update(ctx, &now); err != nil {
			return controller.Result{}, err
		}
	}
	var running corev1.Pod
	if err := r.Get(ctx, key, &running); client.IgnoreNotFound(err) != nil {
		return controller.Result{}, err
	}
	if r.mended { // the Pod says whether it is to be replaced
		replace = running.UID != "" && running.Annotations[sizeKey] != want
	}
	if replace {
		if err := client.IgnoreNotFound(r.Delete(ctx, &running)); err != nil {
			return controller.Result{}, err
		}
	}
	return controller.Done(), ensure(ctx, r.Client, db, pod)
}

func sizeBug() Bug {
	return Bug{
		Name:    "guard-before-effect",
		Shows:   "the Pod keeps its old size after a crash after the update of the ConfigMap, or an error for the deletion of the Pod",
		Finding: "metadata.annotations[\"bugs.example.com/size\"] is \"1\"",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, size{m.Client(), mended}, controller.Owns[*corev1.ConfigMap](), controller.Owns[*corev1.Pod]())
			}, database("db"))
			bigger := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":2}}`))
			if err := env.Client.Patch(env.Context(), database("db"), bigger); err != nil {
				t.Fatal(err)
			}
			env.Settled()
			return func() {
				steertest.Expect[*corev1.Pod](env, "default/db", steertest.Field(func(p *corev1.Pod) string { return p.Annotations[sizeKey] }, "2"))
			}
		},
	}
}
