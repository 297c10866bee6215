// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/internal/testserver"
	"github.com/steer-dev/steer/apiserver/resource"
)

var (
	admin   = testserver.Admin()
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

type widgetRules = testserver.WidgetRules

func widgetResource() *resource.Resource { return testserver.Widgets() }

func configMapResource() *resource.Resource { return testserver.ConfigMaps() }

func newServer(t testing.TB, edit ...func(*apiserver.Options)) *apiserver.Server {
	t.Helper()
	return testserver.New(t, edit...)
}

func widget(name string, edit ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return testserver.Widget(name, edit...)
}

func config(s *apiserver.Server) *rest.Config {
	return &rest.Config{Host: "https://steer.invalid", Transport: s.RoundTripper(admin), QPS: -1}
}

func dynamicClient(t testing.TB, s *apiserver.Server) dynamic.Interface {
	t.Helper()
	return dynamicFor(t, config(s))
}

func dynamicFor(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
