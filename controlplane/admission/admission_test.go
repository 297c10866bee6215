// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// cluster is a store with classes and limits in it, and the whole chain over it.
type cluster struct {
	t     *testing.T
	store *storage.Memory
	chain resource.Admissions
}

func newCluster(t *testing.T) *cluster {
	store := storage.NewMemory(storage.MemoryOptions{})
	return &cluster{t: t, store: store, chain: chainOver(store)}
}

func chainOver(store storage.Store) resource.Admissions {
	return admission.Plugins(component.Deps{Store: store}).Admission(nil).(resource.Admissions)
}

// has stores an object.
func (c *cluster) has(bucket, name string, obj any) {
	c.t.Helper()
	steptest.Put(c.t, c.store, storage.Key{Bucket: bucket, Name: name}, obj)
}

// of is a resource as admissions see it.
func of(name string) *resource.Resource {
	gr := schema.ParseGroupResource(name)
	return &resource.Resource{Names: resource.Names{Group: gr.Group, Plural: gr.Resource}}
}

// write asks the chain about a write of an object of a resource, "plural.group", and
// returns what it says against it. An admission that claims not to change the object
// must not.
func (c *cluster) write(name string, obj, old resource.Object) string {
	c.t.Helper()
	r := &resource.AdmissionRequest{
		Request: &resource.Request{
			Resource:  of(name),
			Namespace: obj.GetNamespace(), Name: obj.GetName(),
		},
		Operation: resource.Create, Object: obj, Old: old,
	}
	if old != nil {
		r.Operation = resource.Update
	}
	for _, link := range c.chain {
		mutates := link.(resource.Mutator).Mutates(r)
		before := obj.DeepCopyObject()
		if err := link.Admit(c.t.Context(), r); err != nil {
			return err.Error()
		}
		if diff := cmp.Diff(before, r.Object); diff != "" && !mutates {
			c.t.Errorf("%T changed an object that it said it would not:\n%s", link, diff)
		}
	}
	if err := c.chain.Validate(c.t.Context(), r); err != nil {
		return err.Error()
	}
	return ""
}

func (c *cluster) refuses(want, name string, obj, old resource.Object) {
	c.t.Helper()
	if got := c.write(name, obj, old); got != want {
		c.t.Errorf("refused with %q, want %q", got, want)
	}
}

func (c *cluster) accepts(name string, obj, old resource.Object) {
	c.t.Helper()
	c.refuses("", name, obj, old)
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default"}
}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named("p"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	if change != nil {
		change(p)
	}
	return p
}

func amounts(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = quantity.MustParse(pairs[i+1])
	}
	return l
}

func ptr[T any](v T) *T { return &v }

func TestPrioritySetsThePriorityOfPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	put := func(name string, value int32, isDefault bool, policy corev1.PreemptionPolicy) {
		c.has("scheduling.k8s.io/priorityclasses", name, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: isDefault, PreemptionPolicy: &policy,
		})
	}
	p := pod(nil)
	c.accepts("pods", p, nil)
	equal(t, "without a class", []any{int32(0), corev1.PreemptLowerPriority, ""}, []any{*p.Spec.Priority, *p.Spec.PreemptionPolicy, p.Spec.PriorityClassName})

	put("high", 1000, false, corev1.PreemptNever)
	put("usual", 7, true, corev1.PreemptLowerPriority)
	p = pod(nil)
	c.accepts("pods", p, nil)
	equal(t, "by default", []any{int32(7), "usual"}, []any{*p.Spec.Priority, p.Spec.PriorityClassName})
	high := pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" })
	c.accepts("pods", high, nil)
	equal(t, "by name", []any{int32(1000), corev1.PreemptNever}, []any{*high.Spec.Priority, *high.Spec.PreemptionPolicy})
	c.refuses(`pods "p" is forbidden: no PriorityClass with name lost was found`, "pods",
		pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "lost" }), nil)
	c.refuses(`pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name`,
		"pods", pod(func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "high", ptr(int32(5)) }), nil)

	again := pod(nil)
	c.accepts("pods", again, high)
	equal(t, "of an update that says nothing", int32(1000), *again.Spec.Priority)

	second := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "second"}, GlobalDefault: true}
	c.refuses(`priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass usual is already marked as default. Only one default can exist`, "priorityclasses.scheduling.k8s.io", second, nil)
	usual := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, GlobalDefault: true}
	c.accepts("priorityclasses.scheduling.k8s.io", usual, usual)
}

func TestDefaultTolerationsAreAddedToPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := pod(nil)
	c.accepts("pods", p, nil)
	equal(t, "tolerations", []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(300))},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(300))},
	}, p.Spec.Tolerations)
	all := pod(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	c.accepts("pods", all, nil)
	equal(t, "of one that tolerates everything", 1, len(all.Spec.Tolerations))
}

func TestStorageProtectsObjectsAndSetsTheDefaultClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i, name := range []string{"old", "new", "other"} {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(int64(i), 0)}}
		if name != "other" {
			class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}
		c.has("storage.k8s.io/storageclasses", name, class)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("c")}
	c.accepts("persistentvolumeclaims", claim, nil)
	equal(t, "claim", []any{[]string{"kubernetes.io/pvc-protection"}, ptr("new")}, []any{claim.Finalizers, claim.Spec.StorageClassName})
	none := &corev1.PersistentVolumeClaim{ObjectMeta: named("c"), Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr("")}}
	c.accepts("persistentvolumeclaims", none, nil)
	equal(t, "claim without a class", ptr(""), none.Spec.StorageClassName)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Finalizers: []string{"a/b"}}}
	c.accepts("persistentvolumes", volume, nil)
	equal(t, "volume", []string{"a/b", "kubernetes.io/pv-protection"}, volume.Finalizers)
}

func TestStorageResizeRequiresAnExpandableClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.has("storage.k8s.io/storageclasses", "grows", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, AllowVolumeExpansion: ptr(true)})
	claim := func(class, size string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: named("c"), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", size)},
		}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	c.accepts("persistentvolumeclaims", claim("grows", "2Gi", ""), claim("grows", "1Gi", corev1.ClaimBound))
	c.refuses(`persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded`,
		"persistentvolumeclaims", claim("grows", "2Gi", ""), claim("grows", "1Gi", corev1.ClaimPending))
	c.refuses(`persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`,
		"persistentvolumeclaims", claim("stays", "2Gi", ""), claim("stays", "1Gi", corev1.ClaimBound))
}

func TestIngressClassSetsTheDefault(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.has("networking.k8s.io/ingressclasses", "usual", &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{
		Name: "usual", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
	}})
	ingress := &networkingv1.Ingress{ObjectMeta: named("i")}
	c.accepts("ingresses.networking.k8s.io", ingress, nil)
	equal(t, "class", ptr("usual"), ingress.Spec.IngressClassName)
	annotated := &networkingv1.Ingress{ObjectMeta: named("i")}
	annotated.Annotations = map[string]string{"kubernetes.io/ingress.class": "x"}
	c.accepts("ingresses.networking.k8s.io", annotated, nil)
	equal(t, "class of one with the annotation", (*string)(nil), annotated.Spec.IngressClassName)
}

func TestTaintNodesTaintsNewNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	c.accepts("nodes", node, nil)
	c.accepts("nodes", node, node)
	equal(t, "taints", []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}, node.Spec.Taints)
}

func TestRuntimeClassSetsOverheadAndScheduling(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.has("node.k8s.io/runtimeclasses", "vm", &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Overhead: &nodev1.Overhead{PodFixed: amounts("memory", "64Mi")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"vm": "yes"}, Tolerations: []corev1.Toleration{{Key: "vm", Operator: "Exists"}}},
	})
	p := pod(func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr("vm") })
	c.accepts("pods", p, nil)
	equal(t, "overhead", "64Mi", ptr(p.Spec.Overhead[corev1.ResourceMemory]).String())
	equal(t, "node selector", map[string]string{"vm": "yes"}, p.Spec.NodeSelector)
	equal(t, "tolerations", 3, len(p.Spec.Tolerations))
	c.refuses(`pods "p" is forbidden: pod rejected: RuntimeClass "lost" not found`, "pods", pod(func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr("lost") }), nil)
	c.refuses(`pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`,
		"pods", pod(func(p *corev1.Pod) { p.Spec.Overhead = amounts("memory", "1Mi") }), nil)
	c.refuses(`pods "p" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no`,
		"pods", pod(func(p *corev1.Pod) {
			p.Spec.RuntimeClassName, p.Spec.NodeSelector = ptr("vm"), map[string]string{"vm": "no"}
		}), nil)
}

func TestLimitRangerSetsDefaultsAndBounds(t *testing.T) {
	t.Parallel()
	limits := func(item corev1.LimitRangeItem) *cluster {
		c := newCluster(t)
		c.has("limitranges", "default/l", &corev1.LimitRange{ObjectMeta: named("l"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
		c.has("limitranges", "other/l", &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "l"}, Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: amounts("cpu", "1m")}},
		}})
		return c
	}
	asks := func(requests, limits corev1.ResourceList) *corev1.Pod {
		return pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
		})
	}
	c := limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: amounts("cpu", "2", "memory", "1Gi"), DefaultRequest: amounts("cpu", "1")})
	p := asks(nil, amounts("memory", "2Gi"))
	c.accepts("pods", p, nil)
	equal(t, "annotation", "LimitRanger plugin set: cpu request for container c; cpu limit for container c", p.Annotations[admission.LimitAnnotation])
	equal(t, "request", "1", ptr(p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]).String())
	equal(t, "own limit", "2Gi", ptr(p.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]).String())

	for _, test := range []struct {
		item             corev1.LimitRangeItem
		requests, limits corev1.ResourceList
		want             string
	}{
		{corev1.LimitRangeItem{Min: amounts("cpu", "100m")}, amounts("cpu", "50m"), nil, "minimum cpu usage per Container is 100m, but request is 50m"},
		{corev1.LimitRangeItem{Min: amounts("cpu", "100m")}, nil, nil, "minimum cpu usage per Container is 100m.  No request is specified"},
		{corev1.LimitRangeItem{Max: amounts("cpu", "1")}, nil, amounts("cpu", "2"), "maximum cpu usage per Container is 1, but limit is 2"},
		{corev1.LimitRangeItem{Max: amounts("cpu", "1")}, nil, nil, "maximum cpu usage per Container is 1.  No limit is specified"},
		{corev1.LimitRangeItem{MaxLimitRequestRatio: amounts("cpu", "2")}, amounts("cpu", "1"), amounts("cpu", "3"), "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
		{corev1.LimitRangeItem{MaxLimitRequestRatio: amounts("cpu", "2")}, amounts("cpu", "1"), amounts("cpu", "2"), ""},
	} {
		test.item.Type = corev1.LimitTypeContainer
		want := ""
		if test.want != "" {
			want = `pods "p" is forbidden: ` + test.want
		}
		limits(test.item).refuses(want, "pods", asks(test.requests, test.limits), nil)
	}
	limits(corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: amounts("storage", "1Gi")}).refuses(
		`persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi`, "persistentvolumeclaims",
		&corev1.PersistentVolumeClaim{ObjectMeta: named("c"), Spec: corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "2Gi")},
		}}, nil)
}

func TestPodResourcesAreThoseOfTheLargestPhase(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	container := func(cpu string, restart *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{RestartPolicy: restart, Resources: corev1.ResourceRequirements{Requests: amounts("cpu", cpu)}}
	}
	for _, test := range []struct {
		name string
		spec corev1.PodSpec
		want string
	}{
		{"containers", corev1.PodSpec{Containers: []corev1.Container{container("1", nil), container("2", nil)}}, "3"},
		{"init container", corev1.PodSpec{InitContainers: []corev1.Container{container("5", nil), container("4", nil)}, Containers: []corev1.Container{container("1", nil)}}, "5"},
		{"sidecar", corev1.PodSpec{InitContainers: []corev1.Container{container("2", &always), container("5", nil)}, Containers: []corev1.Container{container("1", nil)}}, "7"},
		{"Pod", corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "9")}, Containers: []corev1.Container{container("1", nil)}}, "9"},
	} {
		if got := admission.PodRequests(&test.spec)[corev1.ResourceCPU]; got.String() != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.String(), test.want)
		}
	}
}

// TestChainSkipsOtherResources: writes of most resources cost the chain nothing,
// and those of the others no more than the links that have to do with them.
func TestChainSkipsOtherResources(t *testing.T) {
	t.Parallel()
	chain := chainOver(storage.NewMemory(storage.MemoryOptions{}))
	for name, want := range map[string]int{"configmaps": 0, "ingresses": 0, "ingresses.networking.k8s.io": 1, "persistentvolumeclaims": 4, "bindings": 1} {
		links, _ := resource.ForResource(chain, of(name)).(resource.Admissions)
		if len(links) != want {
			t.Errorf("%s concern %d links, want %d", name, len(links), want)
		}
	}
	// The unrestricted chain admits the same.
	p := pod(nil)
	about := func(name string) *resource.AdmissionRequest {
		return &resource.AdmissionRequest{Request: &resource.Request{Resource: of(name)}, Operation: resource.Create, Object: p}
	}
	if chain.Mutates(about("pods.example.com")) || !chain.Mutates(about("pods")) {
		t.Error("Pods have to be theirs, and what is called alike must not")
	}
}

// TestReaderFollowsTheStore: what was read once is read again after a change.
func TestReaderFollowsTheStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 3 {
		c.has("scheduling.k8s.io/priorityclasses", "a", &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}, Value: int32(i), GlobalDefault: true,
		})
		p := pod(nil)
		c.accepts("pods", p, nil)
		equal(t, "priority", int32(i), *p.Spec.Priority)
	}
	for name, value := range map[string]int32{"b": -1, "c": -2} { // one that joins
		c.has("scheduling.k8s.io/priorityclasses", name, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}, Value: value, GlobalDefault: name == "c",
		})
	}
	p := pod(nil)
	c.accepts("pods", p, nil)
	equal(t, "priority", int32(-2), *p.Spec.Priority)
}
