// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/steer-dev/steer/generate"
)

const withClients = `
-- api/shop/v1/doc.go --
// +groupName=shop.example.com
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
package v1
-- api/shop/v1/types.go --
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Policy is in a namespace.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pol
type Policy struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec              PolicySpec   ` + "`json:\"spec\"`" + `
	Status            PolicyStatus ` + "`json:\"status,omitempty\"`" + `
}

// PolicySpec is what is wanted.
type PolicySpec struct {
	Size int32 ` + "`json:\"size\"`" + `
	// +listType=map
	// +listMapKey=name
	Parts []Part ` + "`json:\"parts,omitempty\"`" + `
}

// Part is a part.
type Part struct {
	Name string ` + "`json:\"name\"`" + `
}

// PolicyStatus is what is.
type PolicyStatus struct {
	Ready bool ` + "`json:\"ready,omitempty\"`" + `
}

// PolicyList is a list.
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	metav1.ListMeta ` + "`json:\"metadata,omitempty\"`" + `
	Items           []Policy ` + "`json:\"items\"`" + `
}

// Shop is outside namespaces.
// +genclient
// +genclient:noStatus
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type Shop struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
}

// ShopList is a list.
// +kubebuilder:object:root=true
type ShopList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	metav1.ListMeta ` + "`json:\"metadata,omitempty\"`" + `
	Items           []Shop ` + "`json:\"items\"`" + `
}
-- use_test.go --
package use

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	v1 "example.com/project/api/shop/v1"
	"example.com/project/api/shop/v1/applyconfiguration"
	ac "example.com/project/api/shop/v1/applyconfiguration/shop/v1"
	"example.com/project/pkg/client/clientset/versioned"
	"example.com/project/pkg/client/clientset/versioned/fake"
	informers "example.com/project/pkg/client/informers/externalversions"
)

func TestGeneratedCode(t *testing.T) {
	if _, err := versioned.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	cs := fake.NewSimpleClientset(&v1.Shop{ObjectMeta: metav1.ObjectMeta{Name: "corner"}})
	made, err := cs.ShopV1().Policies("a").Create(ctx, &v1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.Ready = true
	if _, err := cs.ShopV1().Policies("a").UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(cs, 0)
	lister := factory.Shop().V1().Policies().Lister()
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	got, err := lister.Policies("a").List(labels.Everything())
	if err != nil || len(got) != 1 || !got[0].Status.Ready {
		t.Fatalf("listed %v, %v", got, err)
	}
	if generic, err := factory.ForResource(v1.SchemeGroupVersion.WithResource("policies")); err != nil || generic.Informer() == nil {
		t.Fatal(err)
	}
	close(stop)
	factory.Shutdown()

	p := ac.Policy("p", "a").WithSpec(ac.PolicySpec().WithSize(3).WithParts(ac.Part().WithName("x")))
	if *p.Spec.Size != 3 || *p.GetName() != "p" || *p.Spec.Parts[0].Name != "x" {
		t.Fatalf("%+v", p)
	}
	if _, err := ac.ExtractPolicy(made, "nobody"); err != nil {
		t.Fatal(err)
	}
	if applyconfiguration.ForKind(v1.SchemeGroupVersion.WithKind("Policy")) == nil {
		t.Fatal("no apply configuration")
	}
}
`

func TestGeneratedCodeCompilesAndWorks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles a project")
	}
	dir := project(t, withClients)
	sum, err := os.ReadFile(filepath.Join("..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644); err != nil {
		t.Fatal(err)
	}
	changes, err := run(t, dir, generate.Steer).Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := generate.Apply(changes); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	// Generating again on top of what was generated changes nothing.
	again, err := run(t, dir, generate.Steer).Changes()
	if err != nil || len(again) > 0 {
		t.Fatalf("%d changes, %v", len(again), err)
	}
}
