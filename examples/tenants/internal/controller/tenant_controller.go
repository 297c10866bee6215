// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
)

// TenantReconciler reconciles Tenant objects.
type TenantReconciler struct {
	client     client.Client
	namespaces controller.Children[*corev1.Namespace]
	quotas     controller.Children[*corev1.ResourceQuota]
	bindings   controller.Children[*rbacv1.RoleBinding]
}

// +kubebuilder:rbac:groups=platform.example.com,resources=tenants,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=platform.example.com,resources=tenants/status,verbs=patch
// +kubebuilder:rbac:groups=platform.example.com,resources=databases,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=edit,verbs=bind
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile gives a tenant a namespace with a quota, in which its owners may edit.
func (r *TenantReconciler) Reconcile(ctx context.Context, tenant *platformv1.Tenant) (controller.Result, error) {
	namespace := platformv1.NamespaceOf(tenant.Name)
	progress, err := controller.Sequence{
		controller.NewStep(r.namespaces, []*corev1.Namespace{namespaceOf(tenant)}, func(n *corev1.Namespace) bool { return n.Status.Phase == corev1.NamespaceActive }),
		controller.NewStep(r.quotas, []*corev1.ResourceQuota{quotaOf(tenant)}, nil),
		controller.NewStep(r.bindings, []*rbacv1.RoleBinding{bindingOf(tenant)}, nil),
	}.Apply(ctx, tenant)
	if err != nil {
		return controller.Result{}, err
	}
	databases, err := r.databases(ctx, tenant)
	if err != nil {
		return controller.Result{}, err
	}
	tenant.Status.Namespace, tenant.Status.Databases = namespace, int32(len(databases))
	if progress.Waiting != "" {
		controller.SetReconciling(tenant, &tenant.Status.Conditions, "Waiting", "waits for "+progress.Waiting)
	} else {
		controller.SetReady(tenant, &tenant.Status.Conditions, "Ready", "the namespace is "+namespace)
	}
	return progress.Result(), nil
}

// Cleanup keeps a tenant while it has Databases: the namespace goes with the tenant, and
// Databases are only deleted by those who own them.
func (r *TenantReconciler) Cleanup(ctx context.Context, tenant *platformv1.Tenant) (controller.FinalizerResult, error) {
	databases, err := r.databases(ctx, tenant)
	if err != nil || len(databases) == 0 {
		return controller.Finalized(), err
	}
	tenant.Status.Databases = int32(len(databases))
	controller.SetReconciling(tenant, &tenant.Status.Conditions, "Deleting", fmt.Sprintf("waits until Database %s, one of %d, is deleted", databases[0].Name, len(databases)))
	return controller.FinalizerResult{}, nil
}

// databases are those of a tenant.
func (r *TenantReconciler) databases(ctx context.Context, tenant *platformv1.Tenant) ([]platformv1.Database, error) {
	var list platformv1.DatabaseList
	err := r.client.List(ctx, &list, client.MatchingFields{platformv1.TenantField: tenant.Name})
	return list.Items, err
}

func namespaceOf(tenant *platformv1.Tenant) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: platformv1.NamespaceOf(tenant.Name), Labels: map[string]string{"platform.example.com/tenant": tenant.Name},
	}}
}

func quotaOf(tenant *platformv1.Tenant) *corev1.ResourceQuota {
	pods := resource.MustParse("10")
	if tenant.Spec.Plan == platformv1.Large {
		pods = resource.MustParse("100")
	}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: platformv1.NamespaceOf(tenant.Name), Name: "plan"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: pods}},
	}
}

func bindingOf(tenant *platformv1.Tenant) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: platformv1.NamespaceOf(tenant.Name), Name: "owners"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	for _, owner := range tenant.Spec.Owners {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: owner})
	}
	return binding
}

// SetupWithManager adds the controller to a manager.
func (r *TenantReconciler) SetupWithManager(m *manager.Manager) error {
	r.client = m.Client()
	if err := m.Cache().IndexField(&platformv1.Database{}, platformv1.TenantField, func(obj client.Object) []string {
		return []string{obj.(*platformv1.Database).Spec.Tenant}
	}); err != nil {
		return err
	}
	return controller.Add(m, r,
		controller.Owns[*corev1.Namespace](),
		controller.Owns[*corev1.ResourceQuota](),
		controller.Owns[*rbacv1.RoleBinding](),
		controller.Watches(controller.Map(func(_ context.Context, database *platformv1.Database) []controller.Request {
			return []controller.Request{{NamespacedName: client.ObjectKey{Name: database.Spec.Tenant}}}
		})),
		controller.Finalizer("platform.example.com/databases", r.Cleanup),
		controller.FailureConditions())
}
