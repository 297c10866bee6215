// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/steertest"
)

// served starts a control plane with the definitions in a folder, for programs
// outside this process, and returns its kubeconfig.
func served(t *testing.T, crds string) string {
	t.Helper()
	options := steertest.Options{CRDs: []string{crds}}
	options.Plane.Listen = "127.0.0.1:0"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := steertest.New(t, options).Plane.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// servedByKubeAPIServer does the same with the real kube-apiserver, whose binaries
// module oracle builds.
func servedByKubeAPIServer(t *testing.T, crds string) string {
	t.Helper()
	about := kubeapiserver.Server(t)
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: about.Host, CertificateAuthorityData: about.CAData}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: about.BearerToken}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	install(t, file, crds)
	return file
}

// install creates the definitions in a folder and waits until they are served.
func install(t *testing.T, kubeconfig, crds string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	paths, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("definitions in %s: %v, %v", crds, paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var definition unstructured.Unstructured
		if err := yaml.Unmarshal(text, &definition.Object); err != nil {
			t.Fatal(err)
		}
		made, err := definitions.Create(t.Context(), &definition, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(path), err)
		}
		changes, err := definitions.Watch(t.Context(), metav1.ListOptions{
			FieldSelector: "metadata.name=" + made.GetName(), ResourceVersion: made.GetResourceVersion(),
		})
		if err != nil {
			t.Fatal(err)
		}
		for established := false; !established; {
			event, open := <-changes.ResultChan()
			if !open {
				t.Fatalf("%s is not established", made.GetName())
			}
			conditions, _, err := unstructured.NestedSlice(event.Object.(*unstructured.Unstructured).Object, "status", "conditions")
			if err != nil {
				t.Fatal(err)
			}
			for _, condition := range conditions {
				c := condition.(map[string]any)
				established = established || c["type"] == "Established" && c["status"] == "True"
			}
		}
		changes.Stop()
	}
}
