// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"regexp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
)

// defaultMode of files in volumes.
const defaultMode int32 = 0o644

// defaultPod fills in a Pod. Some defaults are for Pods alone, not for the
// templates of workloads.
func defaultPod(p *corev1.Pod) {
	kind.Fill(&p.Spec.EnableServiceLinks, true)
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	if p.Spec.Resources != nil {
		requestLimits(p.Spec.Resources)
	}
	DefaultSpec(&p.Spec)
	if p.Spec.HostNetwork {
		for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range containers {
				for j := range containers[i].Ports {
					kind.OrDefault(&containers[i].Ports[j].HostPort, containers[i].Ports[j].ContainerPort)
				}
			}
		}
	}
}

// requestLimits requests what is limited, where nothing else is asked for.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// DefaultTemplate sets the defaults of the Pods that a template makes.
func DefaultTemplate(t *corev1.PodTemplateSpec) { DefaultSpec(&t.Spec) }

func DefaultSpec(s *corev1.PodSpec) {
	kind.OrDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	kind.OrDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	kind.OrDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	kind.Fill(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	// serviceAccount is the old name of serviceAccountName; both are kept alike.
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
}

func defaultContainer(c *corev1.Container) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if isLatest(c.Image) {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	kind.OrDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	kind.OrDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		kind.OrDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			kind.OrDefault(&from.FieldRef.APIVersion, "v1")
		}
		if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			kind.Fill(&from.FileKeyRef.Optional, false)
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			defaultProbe(p)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil && h.HTTPGet != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

// imageName is the form of a reference: a registry, a name, a tag, a digest.
var imageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]+)?/)?` +
		`[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*` +
		`(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)
})

// isLatest tells whether an image name means the newest image there is. What is
// no name at all means nothing.
func isLatest(image string) bool {
	const longest = 255
	parts := imageName().FindStringSubmatch(image)
	if parts == nil || len(image) > longest {
		return false
	}
	return parts[1] == "latest" || parts[1] == "" && parts[2] == ""
}

func defaultProbe(p *corev1.Probe) {
	kind.OrDefault(&p.TimeoutSeconds, 1)
	kind.OrDefault(&p.PeriodSeconds, 10)
	kind.OrDefault(&p.SuccessThreshold, 1)
	kind.OrDefault(&p.FailureThreshold, 3)
	if p.HTTPGet != nil {
		defaultHTTPGet(p.HTTPGet)
	}
	if p.GRPC != nil {
		kind.Fill(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	kind.OrDefault(&a.Path, "/")
	kind.OrDefault(&a.Scheme, corev1.URISchemeHTTP)
}

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.Secret != nil:
		kind.Fill(&v.Secret.DefaultMode, defaultMode)
	case v.ConfigMap != nil:
		kind.Fill(&v.ConfigMap.DefaultMode, defaultMode)
	case v.DownwardAPI != nil:
		kind.Fill(&v.DownwardAPI.DefaultMode, defaultMode)
		defaultItems(v.DownwardAPI.Items)
	case v.Image != nil && v.Image.PullPolicy == "":
		v.Image.PullPolicy = corev1.PullIfNotPresent
		if isLatest(v.Image.Reference) {
			v.Image.PullPolicy = corev1.PullAlways
		}
	case v.Projected != nil:
		kind.Fill(&v.Projected.DefaultMode, defaultMode)
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				kind.Fill(&s.ServiceAccountToken.ExpirationSeconds, int64(3600))
			}
			if s.DownwardAPI != nil {
				defaultItems(s.DownwardAPI.Items)
			}
		}
	case v.HostPath != nil:
		kind.Fill(&v.HostPath.Type, corev1.HostPathUnset)
	case v.ISCSI != nil:
		kind.OrDefault(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		kind.OrDefault(&v.RBD.RBDPool, "rbd")
		kind.OrDefault(&v.RBD.RadosUser, "admin")
		kind.OrDefault(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		kind.Fill(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		kind.Fill(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		kind.Fill(&v.AzureDisk.FSType, "ext4")
		kind.Fill(&v.AzureDisk.ReadOnly, false)
	case v.ScaleIO != nil:
		kind.OrDefault(&v.ScaleIO.StorageMode, "ThinProvisioned")
		kind.OrDefault(&v.ScaleIO.FSType, "xfs")
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		kind.Fill(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
}

func defaultItems(items []corev1.DownwardAPIVolumeFile) {
	for _, item := range items {
		if item.FieldRef != nil {
			kind.OrDefault(&item.FieldRef.APIVersion, "v1")
		}
	}
}

// PrepareTemplate drops what the features that are off by default would use.
func PrepareTemplate(t *corev1.PodTemplateSpec) { prepareSpec(&t.Spec) }

func prepareSpec(s *corev1.PodSpec) {
	s.SchedulingGroup = nil
	for i := range s.Volumes {
		if p := s.Volumes[i].Projected; p != nil {
			if len(p.Sources) == 0 {
				p.Sources = nil
			}
			for j := range p.Sources {
				p.Sources[j].ClusterTrustBundle, p.Sources[j].PodCertificate = nil, nil
			}
		}
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil {
				l.StopSignal = nil
			}
		}
	}
}

// matchOwnLabels adds to the selectors of a new Pod the labels whose values it
// shall share, or not share, with its neighbours.
func matchOwnLabels(p *corev1.Pod) {
	add := func(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if v, ok := p.Labels[key]; ok && selector != nil {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{v}})
			}
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		add(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	term := func(t *corev1.PodAffinityTerm) {
		add(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			term(&required[i])
		}
		for i := range preferred {
			term(&preferred[i].PodAffinityTerm)
		}
	}
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
}
