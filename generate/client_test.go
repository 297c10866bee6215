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

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Policy is in a namespace.
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=ApplyWhole,verb=apply
// +genclient:method=ListAgain,verb=list
// +genclient:method=Replace,verb=update
// +genclient:method=Touch,verb=patch
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size
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
	// What others declare.
	corev1.LocalObjectReference ` + "`json:\",inline\"`" + `
	Selector *metav1.LabelSelector                         ` + "`json:\"selector,omitempty\"`" + `
	Env      []corev1.EnvVar                               ` + "`json:\"env,omitempty\"`" + `
	Limits   map[corev1.ResourceName]resource.Quantity     ` + "`json:\"limits,omitempty\"`" + `
	Port     *intstr.IntOrString                           ` + "`json:\"port,omitempty\"`" + `
	Until    *metav1.Time                                  ` + "`json:\"until,omitempty\"`" + `
	Affinity corev1.NodeAffinity                           ` + "`json:\"affinity,omitempty\"`" + `
	// Instances of a generic type.
	Words Optional[[]string]          ` + "`json:\"words,omitempty\"`" + `
	First *Optional[Part]             ` + "`json:\"first,omitempty\"`" + `
	Named map[string]Optional[Part]   ` + "`json:\"named,omitempty\"`" + `
	Rest  []Optional[*Part]           ` + "`json:\"rest,omitempty\"`" + `
	Count Optional[int32]             ` + "`json:\"count,omitempty\"`" + `
}

// Optional holds one or nothing.
type Optional[T any] struct {
	Value T     ` + "`json:\"value,omitempty\"`" + `
	Set   *bool ` + "`json:\"set,omitempty\"`" + `
}

// Part is a part.
type Part struct {
	Name string ` + "`json:\"name\"`" + `
}

// PolicyStatus is what is.
type PolicyStatus struct {
	Ready bool  ` + "`json:\"ready,omitempty\"`" + `
	Size  int32 ` + "`json:\"size,omitempty\"`" + `
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

// Ledger is only read.
// +genclient
// +genclient:readonly
// +kubebuilder:object:root=true
type Ledger struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
}

// LedgerList is a list.
// +kubebuilder:object:root=true
type LedgerList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	metav1.ListMeta ` + "`json:\"metadata,omitempty\"`" + `
	Items           []Ledger ` + "`json:\"items\"`" + `
}

// Ticket has only what is written by hand.
// +genclient
// +genclient:noVerbs
// +kubebuilder:object:root=true
type Ticket struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
}

// Stamp cannot be listed.
// +genclient
// +genclient:skipVerbs=list,deleteCollection,watch
// +kubebuilder:object:root=true
type Stamp struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
}
-- served_test.go --
package use

import (
	"context"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	v1 "example.com/project/api/shop/v1"
	ac "example.com/project/api/shop/v1/applyconfiguration/shop/v1"
	"example.com/project/pkg/client/clientset/versioned"
	informers "example.com/project/pkg/client/informers/externalversions"
)

func TestServed(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	cs, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	policies := cs.ShopV1().Policies("default")
	must := func(p *v1.Policy, err error) *v1.Policy {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	watched, err := policies.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := must(policies.Create(ctx, &v1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PolicySpec{Size: 2}}, metav1.CreateOptions{}))
	if event := <-watched.ResultChan(); event.Object.(*v1.Policy).Name != "p" {
		t.Fatalf("watched %v", event)
	}
	watched.Stop()
	p.Status.Ready = true
	p = must(policies.UpdateStatus(ctx, p, metav1.UpdateOptions{}))
	p.Labels = map[string]string{"a": "b"}
	must(policies.Replace(ctx, p, metav1.UpdateOptions{}))
	must(policies.Touch(ctx, "p", types.MergePatchType, []byte(` + "`{\"metadata\":{\"labels\":{\"c\":\"d\"}}}`" + `), metav1.PatchOptions{}))
	scale, err := policies.GetScale(ctx, "p", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 2 {
		t.Fatalf("scale %v, %v", scale, err)
	}
	scale.Spec.Replicas = 5
	if _, err := policies.UpdateScale(ctx, "p", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := must(policies.Get(ctx, "p", metav1.GetOptions{}))
	if got.Spec.Size != 5 || !got.Status.Ready || got.Labels["a"] != "b" || got.Labels["c"] != "d" {
		t.Fatalf("got %+v", got)
	}
	force := metav1.ApplyOptions{FieldManager: "test", Force: true}
	must(policies.Apply(ctx, ac.Policy("p", "default").WithSpec(ac.PolicySpec().WithSize(7)), force))
	must(policies.ApplyStatus(ctx, ac.Policy("p", "default").WithStatus(ac.PolicyStatus().WithSize(6)), force))
	applied := must(policies.ApplyWhole(ctx, ac.Policy("p", "default").WithSpec(ac.PolicySpec().WithSize(8)), force))
	if applied.Spec.Size != 8 || applied.Status.Size != 6 {
		t.Fatalf("applied %+v", applied)
	}
	list, err := policies.ListAgain(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("listed %v, %v", list, err)
	}
	factory := informers.NewSharedInformerFactory(cs, 0)
	lister := factory.Shop().V1().Policies().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if cached, err := lister.Policies("default").List(labels.Everything()); err != nil || len(cached) != 1 || cached[0].Spec.Size != 8 {
		t.Fatalf("cached %v, %v", cached, err)
	}
	gone := policies.Delete(ctx, "p", metav1.DeleteOptions{})
	if left, err := policies.List(ctx, metav1.ListOptions{}); gone != nil || err != nil || len(left.Items) != 0 {
		t.Fatalf("left %v, %v, %v", left, gone, err)
	}
	if ledgers, err := cs.ShopV1().Ledgers("default").List(ctx, metav1.ListOptions{}); err != nil || len(ledgers.Items) != 0 {
		t.Fatal(ledgers, err)
	}
}
-- use_test.go --
package use

import (
	"context"
	"reflect"
	"strconv"
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
	typed "example.com/project/pkg/client/informers/externalversions/shop/v1"
)

func TestCopiesShareNothing(t *testing.T) {
	yes := true
	full := func() *v1.PolicySpec {
		return &v1.PolicySpec{
			Words: v1.Optional[[]string]{Value: []string{"a"}, Set: &yes},
			First: &v1.Optional[v1.Part]{Value: v1.Part{Name: "a"}, Set: &yes},
			Named: map[string]v1.Optional[v1.Part]{"k": {Set: &yes}},
			Rest:  []v1.Optional[*v1.Part]{{Value: &v1.Part{Name: "a"}}},
		}
	}
	one := full()
	two := one.DeepCopy()
	if !reflect.DeepEqual(one, two) {
		t.Fatalf("%+v, %+v", one, two)
	}
	two.Words.Value[0], *two.First.Set, two.First.Value.Name = "b", false, "b"
	*two.Named["k"].Set, two.Rest[0].Value.Name = false, "b"
	if !yes || !reflect.DeepEqual(one, full()) {
		t.Fatalf("shared: %+v", one)
	}
}

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
	seen := make(chan *v1.Policy, 1)
	shared := factory.Shop().V1().Policies().TypedInformer()
	if _, err := shared.AddTypedEventHandler(typed.PolicyHandlerFuncs{AddFunc: func(p *v1.Policy) { seen <- p }}); err != nil {
		t.Fatal(err)
	}
	bySize := func(p *v1.Policy) ([]string, error) { return []string{strconv.Itoa(int(p.Spec.Size))}, nil }
	if err := shared.AddTypedIndexers(typed.PolicyIndexers{"size": bySize}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	got, err := lister.Policies("a").List(labels.Everything())
	if err != nil || len(got) != 1 || !got[0].Status.Ready {
		t.Fatalf("listed %v, %v", got, err)
	}
	if p := <-seen; p != got[0] {
		t.Fatalf("seen %v", p)
	}
	if found, err := shared.GetTypedIndexer().ByIndex("size", "0"); err != nil || len(found) != 1 || found[0] != got[0] {
		t.Fatalf("found %v, %v", found, err)
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
	if _, err := ac.ExtractPolicy(made, "no-manager"); err != nil {
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
	changes, err := run(t, dir).Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := generate.Apply(changes); err != nil {
		t.Fatal(err)
	}
	crds := filepath.Join(dir, "config", "crd", "bases")
	command := func(kubeconfig string, args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "KUBECONFIG="+kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	command(served(t, crds), "test", "./...")
	if os.Getenv("STEER_UPSTREAM_BIN") != "" {
		command(servedByKubeAPIServer(t, crds), "test", "-run=TestServed", ".")
	}
	// Generating again on top of what was generated changes nothing.
	again, err := run(t, dir).Changes()
	if err != nil || len(again) > 0 {
		t.Fatalf("%d changes, %v", len(again), err)
	}
}
