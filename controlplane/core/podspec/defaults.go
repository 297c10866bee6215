// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/volume"
)

// defaultMode of files in volumes.
const defaultMode int32 = 0o644

// Default fills in what a Pod or a template of Pods leaves out.
func Default(s *corev1.PodSpec) {
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

// isLatest reports whether an image name means the newest image there is. What is
// no name at all means nothing.
func isLatest(image string) bool {
	const longest = 255
	if tag, ok := fastTag(image); ok {
		return tag == "latest" || tag == ""
	}
	parts := imageName().FindStringSubmatch(image)
	if parts == nil || len(image) > longest {
		return false
	}
	return parts[1] == "latest" || parts[1] == "" && parts[2] == ""
}

// fastTag returns the tag of a reference that is certainly one and has no digest:
// names of small letters and digits with single dots and dashes between them, and maybe a
// tag. What it does not accept is for imageName.
//
//steer:fast names
func fastTag(image string) (tag string, ok bool) {
	const longest, longestTag = 255, 128
	name, tag, tagged := strings.Cut(image, ":")
	if len(image) > longest || tagged && (tag == "" || len(tag) > longestTag || !alphanumeric(tag[0])) {
		return "", false
	}
	for i := range len(tag) {
		if c := tag[i]; !alphanumeric(c) && c != '.' && c != '-' && c != '_' {
			return "", false
		}
	}
	apart := true // the beginning, and what keeps names apart, is followed by a name
	for i := range len(name) {
		c := name[i]
		between := c == '.' || c == '-' || c == '/'
		if between && apart || !between && !(alphanumeric(c) && c|0x20 == c) {
			return "", false
		}
		apart = between
	}
	return tag, !apart
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
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

// defaultVolume fills in every source that is written: that there may be only one is
// for the validation to say.
func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		kind.Fill(&v.Secret.DefaultMode, defaultMode)
	}
	if v.ConfigMap != nil {
		kind.Fill(&v.ConfigMap.DefaultMode, defaultMode)
	}
	if v.DownwardAPI != nil {
		kind.Fill(&v.DownwardAPI.DefaultMode, defaultMode)
		defaultItems(v.DownwardAPI.Items)
	}
	if v.Image != nil && v.Image.PullPolicy == "" {
		v.Image.PullPolicy = corev1.PullIfNotPresent
		if isLatest(v.Image.Reference) {
			v.Image.PullPolicy = corev1.PullAlways
		}
	}
	if v.Projected != nil {
		kind.Fill(&v.Projected.DefaultMode, defaultMode)
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				kind.Fill(&s.ServiceAccountToken.ExpirationSeconds, int64(3600))
			}
			if s.DownwardAPI != nil {
				defaultItems(s.DownwardAPI.Items)
			}
		}
	}
	if v.HostPath != nil {
		kind.Fill(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.ISCSI != nil {
		kind.OrDefault(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		kind.OrDefault(&v.RBD.RBDPool, "rbd")
		kind.OrDefault(&v.RBD.RadosUser, "admin")
		kind.OrDefault(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		volume.DefaultAzureDisk(v.AzureDisk)
	}
	if v.ScaleIO != nil {
		kind.OrDefault(&v.ScaleIO.StorageMode, "ThinProvisioned")
		kind.OrDefault(&v.ScaleIO.FSType, "xfs")
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
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
