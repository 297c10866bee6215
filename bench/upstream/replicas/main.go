// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command replicas does with controller-runtime what examples/replicas does:
// it keeps a Fleet at its number of Pods. Its main is what a scaffolded project
// starts with: leader election, probes, guarded metrics, all built-in kinds in
// the scheme.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/steer-dev/steer/examples/replicas/api/v1"
)

func main() {
	metrics := flag.String("metrics-bind-address", ":8443", "address of the metrics")
	probes := flag.String("health-probe-bind-address", ":8081", "address of the probes")
	elect := flag.Bool("leader-elect", false, "whether to take part in leader election")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := run(*metrics, *probes, *elect); err != nil {
		ctrl.Log.Error(err, "the operator ended")
		os.Exit(1)
	}
}

func run(metrics, probes string, elect bool) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		HealthProbeBindAddress: probes,
		LeaderElection:         elect,
		LeaderElectionID:       "replicas.example.com",
	})
	if err != nil {
		return err
	}
	r := &reconciler{Client: mgr.GetClient(), scheme: scheme}
	if err := ctrl.NewControllerManagedBy(mgr).For(&v1.Fleet{}).Owns(&corev1.Pod{}).Complete(r); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// reconciler keeps a Fleet at its number of Pods.
type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var fleet v1.Fleet
	if err := r.Get(ctx, req.NamespacedName, &fleet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var have corev1.PodList
	if err := r.List(ctx, &have, client.InNamespace(fleet.Namespace), client.MatchingLabels{"example.com/fleet": fleet.Name}); err != nil {
		return ctrl.Result{}, err
	}
	wanted := map[string]bool{}
	for i := range fleet.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", fleet.Name, i), Namespace: fleet.Namespace}}
		wanted[pod.Name] = true
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, pod, func() error {
			pod.Labels = map[string]string{"example.com/fleet": fleet.Name}
			if pod.CreationTimestamp.IsZero() {
				pod.Spec.Containers = []corev1.Container{{Name: "main", Image: fleet.Spec.Image}}
			}
			return controllerutil.SetControllerReference(&fleet, pod, r.scheme)
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := fleet.DeepCopy()
	fleet.Status.Replicas, fleet.Status.Ready = fleet.Spec.Replicas, 0
	for i := range have.Items {
		pod := &have.Items[i]
		if !wanted[pod.Name] {
			if err := r.Delete(ctx, pod); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				fleet.Status.Ready++
			}
		}
	}
	return ctrl.Result{}, r.Status().Patch(ctx, &fleet, client.MergeFrom(before))
}
