// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 uses every marker and every schema rule at least once.
//
// +groupName=fixture.steer.dev
// +kubebuilder:object:generate=true
package v1

// +kubebuilder:rbac:groups=core;apps,resources=pods;deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=one;two,verbs=get,namespace=here
// +kubebuilder:rbac:groups="",resources=secrets,verbs=*;get,namespace=there,roleName=reader
// +kubebuilder:rbac:urls=/metrics;/healthz,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;get
// +kubebuilder:rbac:groups=apps,resources=jobs,verbs=get;list

// +kubebuilder:webhookconfiguration:mutating=true,name=fixture-mutating
// +kubebuilder:webhook:path=/mutate,mutating=true,failurePolicy=fail,sideEffects=None,groups=core;fixture.steer.dev,resources=widgets;pods,verbs=create;UPDATE,versions=v1,name=b.fixture.steer.dev,admissionReviewVersions=v1;v1beta1,reinvocationPolicy=IfNeeded,timeoutSeconds=7,matchPolicy=exact,servicePort=9443
// +kubebuilder:webhook:url="https://example.com:8443/x",mutating=true,failurePolicy=ignore,sideEffects=NoneOnDryRun,groups=*,resources=*,verbs=*,versions=*,name=a.fixture.steer.dev,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate,mutating=false,failurePolicy=fail,sideEffects=None,groups=fixture.steer.dev,resources=widgets,verbs=delete;connect,versions=v1,name=v.fixture.steer.dev,admissionReviewVersions=v1,serviceName=svc,serviceNamespace=ns,patch=`{"namespaceSelector":{"matchLabels":{"a":"b"}},"timeoutSeconds":25}`
