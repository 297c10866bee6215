// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controllers runs kube-apiserver and etcd with the controllers of
// kube-controller-manager that make workloads, Services and Nodes behave, and the
// one that checks the types in admission policies, until its standard input ends.
// Its first line of output is JSON: url and token. No
// scheduler and no kubelet run: the caller plays their part.
package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/servicecidrs"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	"k8s.io/kubernetes/pkg/generated/openapi"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"github.com/steer-dev/steer/oracle/upstream"
)

func main() {
	upstream.Main("controllers", func(ctx context.Context, server *upstream.Server) (map[string]any, error) {
		return map[string]any{"url": server.URL, "token": server.Token}, control(ctx, server)
	})
}

// control starts the controllers, which run until ctx ends.
func control(ctx context.Context, server *upstream.Server) error {
	config := &rest.Config{
		Host: server.URL, BearerToken: server.Token, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA}, QPS: -1,
		UserAgent: "kube-controller-manager",
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f := informers.NewSharedInformerFactory(client, 0)
	pods, nodes, services := f.Core().V1().Pods(), f.Core().V1().Nodes(), f.Core().V1().Services()
	sets, revisions, tasks := f.Apps().V1().ReplicaSets(), f.Apps().V1().ControllerRevisions(), f.Batch().V1().Jobs()
	deployments, err := deployment.NewDeploymentController(ctx, f.Apps().V1().Deployments(), sets, pods, client)
	if err != nil {
		return err
	}
	daemons, err := daemon.NewDaemonSetsController(ctx, f.Apps().V1().DaemonSets(), revisions, pods, nodes, client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return err
	}
	jobs, err := job.NewController(ctx, client, pods, tasks, nil, nil)
	if err != nil {
		return err
	}
	schedules, err := cronjob.NewControllerV2(ctx, tasks, f.Batch().V1().CronJobs(), client)
	if err != nil {
		return err
	}
	scaler, err := autoscaler(ctx, config, client, f)
	if err != nil {
		return err
	}
	// With the times that they have in a cluster, too: a node is given up after 50 s, one at most each 10 s.
	lifecycle, err := nodelifecycle.NewNodeLifecycleController(ctx, f.Coordination().V1().Leases(), pods, nodes, f.Apps().V1().DaemonSets(), client,
		5*time.Second, time.Minute, 50*time.Second, 0.1, 0.01, 50, 0.55)
	if err != nil {
		return err
	}
	evictor, err := tainteviction.New(ctx, client, pods, nodes, "taint-eviction-controller")
	if err != nil {
		return err
	}
	go lifecycle.Run(ctx)
	go evictor.Run(ctx)
	policies, err := policyStatus(client, f)
	if err != nil {
		return err
	}
	const workers = 2
	for _, run := range []func(context.Context, int){
		deployments.Run, daemons.Run, jobs.Run, schedules.Run, scaler.Run, policies.Run,
		replicaset.NewReplicaSetController(ctx, sets, pods, client, replicaset.BurstReplicas).Run,
		replication.NewReplicationManager(ctx, pods, f.Core().V1().ReplicationControllers(), client, replication.BurstReplicas).Run,
		statefulset.NewStatefulSetController(ctx, pods, f.Apps().V1().StatefulSets(), f.Core().V1().PersistentVolumeClaims(), revisions, client).Run,
		endpointslice.NewController(ctx, pods, services, nodes, f.Discovery().V1().EndpointSlices(), 100, client, 0).Run,
		endpointslicemirroring.NewController(ctx, f.Core().V1().Endpoints(), f.Discovery().V1().EndpointSlices(), services, 1000, client, 0).Run,
		endpoint.NewEndpointController(ctx, pods, services, f.Core().V1().Endpoints(), client, 0).Run,
		ttlafterfinished.New(ctx, tasks, client).Run,
		servicecidrs.NewController(ctx, f.Networking().V1().ServiceCIDRs(), f.Networking().V1().IPAddresses(), client).Run,
	} {
		go run(ctx, workers)
	}
	f.Start(ctx.Done())
	return nil
}

// autoscaler returns the controller of HorizontalPodAutoscalers, with the times that it has in a cluster.
func autoscaler(ctx context.Context, config *rest.Config, client *kubernetes.Clientset, f informers.SharedInformerFactory) (*podautoscaler.HorizontalController, error) {
	found := client.Discovery()
	var mapper meta.RESTMapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	if err != nil {
		return nil, err
	}
	resources, err := resourceclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	measured := metrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(config, mapper, custom_metrics.NewAvailableAPIsGetter(found)), external)
	return podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper, measured,
		f.Autoscaling().V2().HorizontalPodAutoscalers(), f.Core().V1().Pods(), 15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second), nil
}

// policyStatus returns the controller that checks the types in expressions of admission policies.
func policyStatus(client *kubernetes.Clientset, f informers.SharedInformerFactory) (*validatingadmissionpolicystatus.Controller, error) {
	known := resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, scheme.Scheme)
	return validatingadmissionpolicystatus.NewController(f.Admissionregistration().V1().ValidatingAdmissionPolicies(),
		client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), &validating.TypeChecker{
			SchemaResolver: known.Combine(&resolver.ClientDiscoveryResolver{Discovery: client.Discovery()}),
			RestMapper:     restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		})
}
