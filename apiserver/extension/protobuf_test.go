// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/custom"
	boats "github.com/steer-dev/steer/apiserver/custom/testdata/boats/v1"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/internal/kubeapiserver"
)

// boatDefinition is a definition of boats without their schema.
const boatDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.boats.example.com}
spec:
  group: boats.example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestProtobufPassesThroughKubeAPIServer: a client of client-go that speaks nothing else reaches a
// custom API server by the aggregator of kube-apiserver.
func TestProtobufPassesThroughKubeAPIServer(t *testing.T) {
	t.Parallel()
	cluster := kubeapiserver.Server(t, kubeapiserver.FrontProxyFlags(t)...)
	start(t, extension.Server{
		Name: "boats",
		Kinds: func(context.Context) ([]extension.Kind, error) {
			return []extension.Kind{custom.Kind[*boats.Boat]{Definition: []byte(boatDefinition)}}, nil
		},
		Configure: func(o *extension.Options) {
			o.Cluster = cluster
			o.Service.ExternalName = "localhost"
		},
	}, "--kubeconfig", kubeapiserver.Kubeconfig(t, cluster))
	newClient(t, cluster).await("/apis/boats.example.com/v1/namespaces/default/boats")
	scheme, version := runtime.NewScheme(), schema.GroupVersion{Group: "boats.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &boats.Boat{}, &boats.BoatList{})
	metav1.AddToGroupVersion(scheme, version)
	config := rest.CopyConfig(cluster)
	config.APIPath = "/apis"
	config.ContentConfig = rest.ContentConfig{
		GroupVersion: &version, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf,
	}
	web, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c := gentype.NewClientWithList[*boats.Boat, *boats.BoatList]("boats", web, runtime.NewParameterCodec(scheme), "default",
		func() *boats.Boat { return &boats.Boat{} }, func() *boats.BoatList { return &boats.BoatList{} }, gentype.PrefersProtobuf[*boats.Boat]())
	created, err := c.Create(t.Context(), &boats.Boat{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: boats.BoatSpec{Hull: "oak", Log: []byte{0, 255}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].UID != created.UID || string(list.Items[0].Spec.Log) != "\x00\xff" {
		t.Fatalf("%+v, %v", list, err)
	}
	w, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-w.ResultChan():
		if boat, ok := event.Object.(*boats.Boat); event.Type != watch.Deleted || !ok || boat.UID != created.UID || boat.Spec.Hull != "oak" {
			t.Errorf("the watch has %s %+v", event.Type, event.Object)
		}
	case <-time.After(time.Minute):
		t.Error("the watch has no event")
	}
}
