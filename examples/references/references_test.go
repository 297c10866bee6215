// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package references_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/references"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

func deployment(name, secret string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "nginx",
					EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}},
				}}},
			},
		},
	}
}

func secret(name, password string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"password": []byte(password)}}
}

func TestADeploymentFollowsTheSecretsThatItNames(t *testing.T) {
	t.Parallel()
	follows(t)
}

// TestADeploymentFollowsItsSecretsWhateverGoesWrong crashes the operator at every write.
func TestADeploymentFollowsItsSecretsWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	sim.Test(t, follows)
}

func follows(t *testing.T) {
	t.Helper()
	env := steertest.New(t, steertest.Options{Operator: references.Operator()})
	hash := func(name, other string) string {
		t.Helper()
		d := steertest.Wait(env, name, func(d *appsv1.Deployment) bool {
			got := d.Spec.Template.Annotations[references.Annotation]
			return got != "" && got != other
		})
		return d.Spec.Template.Annotations[references.Annotation]
	}
	for _, obj := range []client.Object{secret("login", "old"), secret("other", "old"), deployment("web", "login"), deployment("aside", "other")} {
		env.Create(obj)
	}
	env.Settled() // a Deployment that is seen before its Secret is rolled out again
	before, aside := hash("web", ""), hash("aside", "")

	changed := secret("login", "new")
	changed.Namespace = env.Namespace
	if err := env.Client.Update(env.Context(), changed); err != nil {
		t.Fatal(err)
	}
	hash("web", before)
	env.Settled()
	if got := hash("aside", ""); got != aside {
		t.Error("a Deployment was rolled out for a Secret that it does not name")
	}

	// Nothing is written once all is as it should be, nor after a restart.
	env.ExpectNoWrites()
}

// TestTheOperatorLeadsUnderItsRole fails where the generated role lacks what leader
// election needs.
func TestTheOperatorLeadsUnderItsRole(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Operator: references.Operator(), Args: []string{"--leader-elect"}})
	env.Create(secret("login", "password"))
	env.Create(deployment("web", "login"))
	steertest.Wait(env, "web", func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Annotations[references.Annotation] != ""
	})
	lease := client.NewMetadata(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if err := env.Client.Get(env.Context(), client.ObjectKey{Namespace: env.Namespace, Name: references.Operator().Name}, lease); err != nil {
		t.Error(err)
	}
	env.Settled()
}
