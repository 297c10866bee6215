// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/webhook"
)

// tenants is an operator that marks ConfigMaps by patches of their metadata alone, and
// whose validator lists them by an index.
type tenants struct{ client client.Client }

func (o *tenants) setup(_ context.Context, m *manager.Manager) error {
	o.client = m.Client()
	err := m.Cache().IndexField(&corev1.ConfigMap{}, "tenant", func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["tenant"]} })
	if err != nil {
		return err
	}
	if err := webhook.AddValidator(m, o); err != nil {
		return err
	}
	return controller.Add(m, o)
}

func (o *tenants) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if cm.Annotations["example.com/mark"] == "2" {
		return controller.Done(), nil
	}
	part := client.NewMetadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	part.Name, part.Namespace = cm.Name, cm.Namespace
	for i := range 3 {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/mark":"%d"}}}`, i)
		if err := o.client.Patch(ctx, part, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return controller.Result{}, err
		}
	}
	return controller.Done(), nil
}

// ValidateCreate denies a second ConfigMap of a tenant.
func (o *tenants) ValidateCreate(ctx context.Context, cm *corev1.ConfigMap) (webhook.Warnings, error) {
	var others corev1.ConfigMapList
	if err := o.client.List(ctx, &others, client.MatchingFields{"tenant": cm.Data["tenant"]}); err != nil {
		return nil, err
	}
	for i := range others.Items {
		if got := others.Items[i].Data["tenant"]; got != cm.Data["tenant"] {
			return nil, fmt.Errorf("the list has a ConfigMap of %s", got)
		}
	}
	if len(others.Items) > 0 {
		return nil, fmt.Errorf("%s has one already", cm.Data["tenant"])
	}
	return nil, nil
}

func (o *tenants) ValidateUpdate(context.Context, *corev1.ConfigMap, *corev1.ConfigMap) (webhook.Warnings, error) {
	return nil, nil
}

func (o *tenants) ValidateDelete(context.Context, *corev1.ConfigMap) (webhook.Warnings, error) {
	return nil, nil
}

// TestReadsOfValidatorsDoNotDependOnWritesOfTheOperator has many clients create what the
// operator then patches.
func TestReadsOfValidatorsDoNotDependOnWritesOfTheOperator(t *testing.T) {
	t.Parallel()
	operator := &tenants{}
	env := steertest.New(t, steertest.Options{
		Operator: steer.Operator{Name: "tenants", Scheme: steer.Scheme{corev1.AddToScheme}, Setup: operator.setup},
		Webhooks: []string{"testdata/tenants.yaml"},
		Role:     steertest.Administrator,
	})
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() {
			for i := range 10 {
				name := fmt.Sprintf("c%d-%d", n, i)
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"tenant": name}}
				if err := env.Client.Create(env.Context(), cm); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	clients.Wait()
	env.Settled()
}
