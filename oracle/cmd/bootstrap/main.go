// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bootstrap records what a fresh cluster has: the roles and bindings that
// kube-apiserver begins with, after the controller that aggregates cluster
// roles has run, or its flow schemas and priority levels. Each is one line of
// standard output: the bucket of the store, the name in it, and the object as it is
// stored, with $UID, $RV and $TIME for what every cluster has of its own.
//
//	STEER_UPSTREAM_BIN=bin go run ./cmd/bootstrap > ../controlplane/rbac/bootstrap.txt
//	STEER_UPSTREAM_BIN=bin go run ./cmd/bootstrap -of flow > ../controlplane/core/flowcontrol/bootstrap.txt
package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"

	"github.com/steer-dev/steer/oracle/upstream"
)

func main() {
	of := flag.String("of", "roles", "what to record: roles or flow")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *of); err != nil {
		fmt.Fprintln(os.Stderr, "bootstrap:", err)
		os.Exit(1)
	}
}

// recorded returns the version of Kubernetes that a program was built from.
func recorded(program string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return strings.TrimPrefix(module.Version, "v"), nil
		}
	}
	return "", fmt.Errorf("%s is not built from the module k8s.io/kubernetes: build it with make oracle", program)
}

func run(ctx context.Context, of string) (err error) {
	server, err := upstream.Start(ctx, upstream.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, BearerToken: server.Token, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA},
	})
	if err != nil {
		return err
	}
	version, err := recorded(filepath.Join(os.Getenv("STEER_UPSTREAM_BIN"), "kube-apiserver"))
	if err != nil {
		return err
	}
	fmt.Println("# Copyright The Steer Authors.")
	fmt.Println("# SPDX-License-Identifier: Apache-2.0")
	fmt.Printf("# Recorded from kube-apiserver %s by oracle/cmd/bootstrap; do not edit.\n", version)
	switch of {
	case "roles":
		if err := aggregate(ctx, client); err != nil {
			return err
		}
		return print(ctx, client)
	case "flow":
		return printFlow(ctx, client)
	}
	return fmt.Errorf("there is no -of %s: give roles or flow", of)
}

// printFlow prints flow schemas and priority levels, once all schemas have a
// status.
func printFlow(ctx context.Context, client kubernetes.Interface) error {
	api := client.FlowcontrolV1()
	schemas, err := api.FlowSchemas().List(ctx, metav1.ListOptions{})
	for err == nil && slices.ContainsFunc(schemas.Items, func(s flowcontrolv1.FlowSchema) bool { return len(s.Status.Conditions) == 0 }) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		schemas, err = api.FlowSchemas().List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return err
	}
	levels, err := api.PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range schemas.Items {
		for j := range schemas.Items[i].Status.Conditions {
			schemas.Items[i].Status.Conditions[j].LastTransitionTime = placeholder()
		}
		if err := printOne(&schemas.Items[i], flowcontrolv1.SchemeGroupVersion, "flowschemas", "FlowSchema"); err != nil {
			return err
		}
	}
	for i := range levels.Items {
		if err := printOne(&levels.Items[i], flowcontrolv1.SchemeGroupVersion, "prioritylevelconfigurations", "PriorityLevelConfiguration"); err != nil {
			return err
		}
	}
	return nil
}

// placeholder is a moment that stands for all.
func placeholder() metav1.Time { return metav1.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// aggregate runs the controller until every role that gathers others has rules.
func aggregate(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1())
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	// Roles gather from roles that gather: the last change is some time ago.
	before := ""
	for quiet := 0; quiet < 3; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		all, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		complete := true
		for _, r := range all.Items {
			complete = complete && (r.AggregationRule == nil || len(r.Rules) > 0)
		}
		if quiet++; !complete || all.ResourceVersion != before {
			quiet, before = 0, all.ResourceVersion
		}
	}
	return nil
}

func print(ctx context.Context, client kubernetes.Interface) error {
	api := client.RbacV1()
	clusterRoles, err := api.ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	clusterBindings, err := api.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	roles, err := api.Roles("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	bindings, err := api.RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range clusterRoles.Items {
		if err := printOne(&clusterRoles.Items[i], rbacv1.SchemeGroupVersion, "clusterroles", "ClusterRole"); err != nil {
			return err
		}
	}
	for i := range clusterBindings.Items {
		if err := printOne(&clusterBindings.Items[i], rbacv1.SchemeGroupVersion, "clusterrolebindings", "ClusterRoleBinding"); err != nil {
			return err
		}
	}
	for i := range roles.Items {
		if err := printOne(&roles.Items[i], rbacv1.SchemeGroupVersion, "roles", "Role"); err != nil {
			return err
		}
	}
	for i := range bindings.Items {
		if err := printOne(&bindings.Items[i], rbacv1.SchemeGroupVersion, "rolebindings", "RoleBinding"); err != nil {
			return err
		}
	}
	return nil
}

// printOne prints an object without what is this cluster's own.
func printOne(obj interface {
	runtime.Object
	metav1.Object
}, gv schema.GroupVersion, plural, kind string) error {
	obj.GetObjectKind().SetGroupVersionKind(gv.WithKind(kind))
	obj.SetUID("$UID")
	obj.SetResourceVersion("$RV")
	at := placeholder()
	obj.SetCreationTimestamp(at)
	managed := obj.GetManagedFields()
	for i := range managed {
		managed[i].Time = &at
	}
	obj.SetManagedFields(managed)
	encoded, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	encoded = bytes.ReplaceAll(encoded, []byte("2000-01-01T00:00:00Z"), []byte("$TIME"))
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	fmt.Printf("%s/%s %s %s\n", gv.Group, plural, name, encoded)
	return nil
}
