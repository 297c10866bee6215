// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/rand"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
)

// DatabaseReconciler reconciles Database objects.
type DatabaseReconciler struct {
	passwords  controller.Children[*corev1.Secret]
	servers    controller.Children[*appsv1.StatefulSet]
	migrations controller.Children[*batchv1.Job]
	services   controller.Children[*corev1.Service]
}

// +kubebuilder:rbac:groups=platform.example.com,resources=databases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=platform.example.com,resources=databases/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings a Database up step by step: a password, servers, the tables, and then
// the Service by which applications reach it.
func (r *DatabaseReconciler) Reconcile(ctx context.Context, db *platformv1.Database) (controller.Result, error) {
	progress, err := controller.Sequence{
		controller.NewStep(r.passwords, []*corev1.Secret{passwordOf(db)}, nil),
		controller.NewStep(r.servers, []*appsv1.StatefulSet{serverOf(db)}, func(s *appsv1.StatefulSet) bool {
			return s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == db.Spec.Replicas
		}),
		controller.NewStep(r.migrations, []*batchv1.Job{migrationOf(db)}, func(j *batchv1.Job) bool { return j.Status.Succeeded > 0 }),
		controller.NewStep(r.services, []*corev1.Service{serviceOf(db)}, nil),
	}.Apply(ctx, db)
	if err != nil {
		return controller.Result{}, err
	}
	if progress.Waiting != "" {
		controller.SetReconciling(db, &db.Status.Conditions, "Waiting", "waits for "+progress.Waiting)
	} else {
		db.Status.Schema = db.Spec.Schema
		controller.SetReady(db, &db.Status.Conditions, "Ready", "the servers are ready, and have the tables of schema "+db.Spec.Schema)
	}
	return progress.Result(), nil
}

// passwordOf is a new password each time, of which the first is kept.
func passwordOf(db *platformv1.Database) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-password"}, StringData: map[string]string{"password": rand.Text()}}
}

func labelsOf(db *platformv1.Database) map[string]string {
	return map[string]string{"platform.example.com/database": db.Name}
}

func serverOf(db *platformv1.Database) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &db.Spec.Replicas, ServiceName: db.Name,
			Selector: &metav1.LabelSelector{MatchLabels: labelsOf(db)},
			Template: podOf(db, corev1.Container{Name: "server", Image: "example.com/database:1"}, corev1.RestartPolicyAlways),
		},
	}
}

func migrationOf(db *platformv1.Database) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-schema"},
		Spec: batchv1.JobSpec{
			Template: podOf(db, corev1.Container{Name: "migrate", Image: "example.com/migrate:1", Args: []string{"--to", db.Spec.Schema}}, corev1.RestartPolicyNever),
		},
	}
}

// podOf is a Pod with the password. Those of a Job have other labels than the server's.
func podOf(db *platformv1.Database, c corev1.Container, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	c.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: db.Name + "-password"}, Key: "password",
	}}}}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{c}}}
	if restart == corev1.RestartPolicyAlways {
		template.Labels = labelsOf(db)
	}
	return template
}

func serviceOf(db *platformv1.Database) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name},
		Spec:       corev1.ServiceSpec{Selector: labelsOf(db), Ports: []corev1.ServicePort{{Name: "sql", Port: 5432}}},
	}
}

// databaseOf is the Database that a Pod is of. Its events bring what the status says of the Pod
// up to date.
func databaseOf(_ context.Context, pod *corev1.Pod) []controller.Request {
	name, ok := pod.Labels["platform.example.com/database"]
	if !ok {
		return nil
	}
	return []controller.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}}
}

// SetupWithManager adds the controller to a manager.
func (r *DatabaseReconciler) SetupWithManager(m *manager.Manager) error {
	r.passwords.Policy, r.migrations.Policy = controller.CreateOnly, controller.RecreateChildren
	return controller.Add(m, r,
		controller.Owns[*corev1.Secret](),
		controller.Owns[*appsv1.StatefulSet](),
		controller.Owns[*batchv1.Job](),
		controller.Owns[*corev1.Service](),
		controller.Watches(controller.Map(databaseOf)),
		controller.FailureConditions())
}
