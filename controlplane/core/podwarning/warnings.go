// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwarning returns the warnings about a Pod ([OfPod]) or a template of Pods
// ([OfTemplate]): fields that are valid but deprecated, without effect, or probably a
// mistake.
package podwarning

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// OfTemplate returns the warnings about a template, which at names.
func OfTemplate(at *field.Path, t *corev1.PodTemplateSpec) []string {
	w := warner{at: at}
	w.spec(&t.Spec, &t.ObjectMeta)
	return w.out
}

// OfPod returns the warnings about a Pod.
func OfPod(p *corev1.Pod) []string {
	var w warner
	w.spec(&p.Spec, &p.ObjectMeta)
	return w.out
}

// warner collects warnings about a Pod or, with a path, a template.
type warner struct {
	at  *field.Path
	out []string
}

func (w *warner) say(at *field.Path, format string, args ...any) {
	w.out = append(w.out, at.String()+": "+fmt.Sprintf(format, args...))
}

func (w *warner) child(names ...string) *field.Path {
	if w.at == nil {
		return field.NewPath(names[0], names[1:]...)
	}
	return w.at.Child(names[0], names[1:]...)
}

func (w *warner) spec(s *corev1.PodSpec, m *metav1.ObjectMeta) {
	w.nodes(s)
	for _, key := range []string{"scheduler.alpha.kubernetes.io/critical-pod"} {
		if _, ok := m.Annotations[key]; ok {
			w.say(w.child("metadata", "annotations").Key(key), `non-functional in v1.16+; use the "priorityClassName" field instead`)
		}
	}
	for _, key := range []string{"security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls"} {
		if _, ok := m.Annotations[key]; ok {
			w.say(w.child("metadata", "annotations").Key(key), `non-functional in v1.11+; use the "sysctls" field instead`)
		}
	}
	w.volumes(s.Volumes)
	for i := range s.Volumes {
		w.overlaps(&s.Volumes[i])
	}
	w.lists(s)
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		w.fraction(s.Overhead, name, func() *field.Path { return w.child("spec", "overhead") })
	}
	if _, ok := m.Annotations[podspec.SeccompOfPod]; ok && (s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil) {
		w.say(w.child("metadata", "annotations").Key(podspec.SeccompOfPod), useSeccompField)
	}
	w.containers(s, m.Annotations)
	w.ports(s)
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		w.say(w.child("spec", "terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	w.affinity(s.Affinity)
	if s.DNSConfig != nil {
		for i, ip := range s.DNSConfig.Nameservers {
			w.out = append(w.out, validation.GetWarningsForIP(w.child("spec", "dnsConfig", "nameservers").Index(i), ip)...)
		}
	}
	for i, a := range s.HostAliases {
		w.out = append(w.out, validation.GetWarningsForIP(w.child("spec", "hostAliases").Index(i).Child("ip"), a.IP)...)
	}
}

func (w *warner) nodes(s *corev1.PodSpec) {
	var renamed []string
	for key := range s.NodeSelector {
		if _, old := valid.RenamedLabel(key); old {
			renamed = append(renamed, key)
		}
	}
	slices.Sort(renamed)
	for _, key := range renamed {
		text, _ := valid.RenamedLabel(key)
		w.say(w.child("spec", "nodeSelector").Key(key), "%s", text)
	}
	if s.Affinity != nil && s.Affinity.NodeAffinity != nil {
		n, at := s.Affinity.NodeAffinity, w.child("spec", "affinity", "nodeAffinity")
		if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			for i := range r.NodeSelectorTerms {
				w.term(at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i), &r.NodeSelectorTerms[i], false)
			}
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			w.term(at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"),
				&n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, true)
		}
	}
	for i, c := range s.TopologySpreadConstraints {
		at := w.child("spec", "topologySpreadConstraints").Index(i)
		if text, old := valid.RenamedLabel(c.TopologyKey); old {
			w.say(at.Child("topologyKey"), "%s is %s", c.TopologyKey, text)
		}
		if c.LabelSelector == nil {
			w.say(at.Child("labelSelector"), "a null labelSelector results in matching no pod")
		}
	}
}

func (w *warner) term(at *field.Path, t *corev1.NodeSelectorTerm, values bool) {
	for i, e := range t.MatchExpressions {
		one := at.Child("matchExpressions").Index(i)
		if text, old := valid.RenamedLabel(e.Key); old {
			w.say(one.Child("key"), "%s is %s", e.Key, text)
		}
		if !values {
			continue
		}
		for j, v := range e.Values {
			for _, problem := range validation.IsValidLabelValue(v) {
				w.say(one.Child("values").Index(j), "%s is invalid, %s", v, problem)
			}
		}
	}
}

func (w *warner) volumes(volumes []corev1.Volume) {
	for i := range volumes {
		v := &volumes[i]
		say := func(set bool, name, text string) {
			if set {
				w.say(w.child("spec", "volumes").Index(i).Child(name), "%s", text)
			}
		}
		say(v.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+")
		say(v.GitRepo != nil, "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+")
		say(v.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+")
		say(v.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+")
		say(v.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+")
		say(v.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+")
		say(v.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+")
		say(v.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+")
		say(v.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+")
	}
}

// file is one path in a volume, and what puts something there; kind is empty where
// that goes without saying.
type file struct{ path, kind, name string }

func (f file) String() string {
	switch f.kind {
	case "":
		return strconv.Quote(f.path)
	case "ConfigMap", "Secret", "ClusterTrustBundle":
		return fmt.Sprintf("%q (%s %q)", f.path, f.kind, f.name)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.kind)
}

func (w *warner) overlaps(v *corev1.Volume) {
	var files []file
	keys := func(items []corev1.KeyToPath, kind, name string) {
		for i := range items {
			files = append(files, file{items[i].Path, kind, name})
		}
	}
	fields := func(items []corev1.DownwardAPIVolumeFile, kind string) {
		for i := range items {
			files = append(files, file{items[i].Path, kind, ""})
		}
	}
	what := func() string { return "Projected" }
	switch {
	case v.ConfigMap != nil:
		what = func() string { return fmt.Sprintf("ConfigMap %q", v.ConfigMap.Name) }
		keys(v.ConfigMap.Items, "", "")
	case v.Secret != nil:
		what = func() string { return fmt.Sprintf("Secret %q", v.Secret.SecretName) }
		keys(v.Secret.Items, "", "")
	case v.DownwardAPI != nil:
		what = func() string { return "DownwardAPI" }
		fields(v.DownwardAPI.Items, "")
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s := &v.Projected.Sources[i]
			switch {
			case s.ConfigMap != nil:
				keys(s.ConfigMap.Items, "ConfigMap", s.ConfigMap.Name)
			case s.Secret != nil:
				keys(s.Secret.Items, "Secret", s.Secret.Name)
			case s.DownwardAPI != nil:
				fields(s.DownwardAPI.Items, "DownwardAPI")
			case s.ServiceAccountToken != nil:
				files = append(files, file{s.ServiceAccountToken.Path, "ServiceAccountToken", ""})
			case s.ClusterTrustBundle != nil:
				b := s.ClusterTrustBundle
				files = append(files, file{b.Path, "ClusterTrustBundle", cmp.Or(kind.Value(b.Name), kind.Value(b.SignerName))})
			case s.PodCertificate != nil:
				for _, f := range []file{
					{s.PodCertificate.CertificateChainPath, "PodCertificate chain", ""}, {s.PodCertificate.KeyPath, "PodCertificate key", ""},
					{s.PodCertificate.CredentialBundlePath, "PodCertificate credential bundle", ""},
				} {
					if f.path != "" {
						files = append(files, f)
					}
				}
			case *s == corev1.VolumeProjection{}:
				w.out = append(w.out, fmt.Sprintf("volume %q (Projected) has no sources provided", v.Name))
			}
		}
	}
	for i := range files {
		files[i].path = strings.TrimRight(files[i].path, "/")
	}
	for i, f := range files {
		for _, other := range files[:i] {
			if overlap(f.path, other.path) {
				w.out = append(w.out, fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", v.Name, what(), f, other))
			}
		}
	}
}

// overlap reports whether paths are the same, or one is in the other.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(path.Clean(a), b+"/") || strings.HasPrefix(path.Clean(b), a+"/")
}

func (w *warner) lists(s *corev1.PodSpec) {
	seen := sets.New[string]()
	for i, a := range s.HostAliases {
		if seen.Has(a.IP) {
			w.say(w.child("spec", "hostAliases").Index(i).Child("ip"), "duplicate ip %q", a.IP)
		}
		seen.Insert(a.IP)
	}
	seen = sets.New[string]()
	for i, r := range s.ImagePullSecrets {
		if seen.Has(r.Name) {
			w.say(w.child("spec", "imagePullSecrets").Index(i).Child("name"), "duplicate name %q", r.Name)
		}
		seen.Insert(r.Name)
	}
	for i, r := range s.ImagePullSecrets {
		if r.Name == "" {
			w.say(w.child("spec", "imagePullSecrets").Index(i).Child("name"), "invalid empty name %q", r.Name)
		}
	}
}

// fraction warns of a part of a byte; the path is made for a warning alone.
func (w *warner) fraction(list corev1.ResourceList, name corev1.ResourceName, at func() *field.Path) {
	if q, ok := list[name]; ok && q.MilliValue()%1000 != 0 {
		w.say(at().Key(string(name)), "fractional byte value %q is invalid, must be an integer", q.String())
	}
}

// each visits containers with their paths.
func (w *warner) each(s *corev1.PodSpec, visit func(at place, c *corev1.Container)) {
	for i := range s.InitContainers {
		visit(place{w, "initContainers", i}, &s.InitContainers[i])
	}
	for i := range s.Containers {
		visit(place{w, "containers", i}, &s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		visit(place{w, "ephemeralContainers", i}, (*corev1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// place is where a container is; its path is worked out for warnings alone.
type place struct {
	w    *warner
	list string
	i    int
}

// child is the path of a field of the container.
func (p place) child(names ...string) *field.Path {
	return p.w.child("spec", p.list).Index(p.i).Child(names[0], names[1:]...)
}

func (w *warner) containers(s *corev1.PodSpec, annotations map[string]string) {
	profiled := podspec.Profiled(annotations)
	w.each(s, func(at place, c *corev1.Container) {
		if profiled {
			w.profiles(s, c, annotations)
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			w.fraction(c.Resources.Limits, name, func() *field.Path { return at.child("resources", "limits") })
			w.fraction(c.Resources.Requests, name, func() *field.Path { return at.child("resources", "requests") })
		}
		again := repeats(c.Env)
		for i := range c.Env {
			e := &c.Env[i]
			if !again(i) {
				continue
			}
			self := "$(" + e.Name + ")"
			if e.ValueFrom != nil || e.Value == self || !strings.Contains(e.Value, self) {
				w.say(at.child("env").Index(i), "hides previous definition of %q, which may be dropped when using apply", e.Name)
			}
		}
	})
}

// repeats returns a function that reports whether a variable has the name of one before
// it. It is called for each variable in order.
func repeats(env []corev1.EnvVar) func(i int) bool {
	const few = 16
	if len(env) <= few {
		return func(i int) bool {
			return slices.ContainsFunc(env[:i], func(e corev1.EnvVar) bool { return e.Name == env[i].Name })
		}
	}
	seen := make(map[string]bool, len(env))
	return func(i int) bool {
		before := len(seen)
		seen[env[i].Name] = true
		return len(seen) == before
	}
}

const useSeccompField = `non-functional in v1.27+; use the "seccompProfile" field instead`

// profiles looks for annotations of a container that its fields do not repeat.
func (w *warner) profiles(s *corev1.PodSpec, c *corev1.Container, annotations map[string]string) {
	var own corev1.SecurityContext
	if c.SecurityContext != nil {
		own = *c.SecurityContext
	}
	at := w.child("metadata", "annotations")
	if _, ok := annotations[podspec.SeccompOfContainer+c.Name]; ok && own.SeccompProfile == nil {
		w.say(at.Key(podspec.SeccompOfContainer+c.Name), useSeccompField)
	}
	if w.at == nil || own.AppArmorProfile != nil { // of Pods, [podspec.AppArmor] tells
		return
	}
	v, ok := annotations[podspec.AppArmorOfContainer+c.Name]
	var ofPod *corev1.AppArmorProfile
	if s.SecurityContext != nil {
		ofPod = s.SecurityContext.AppArmorProfile
	}
	if ok && (ofPod == nil || !equality.Semantic.DeepEqual(ofPod, podspec.AppArmorProfile(v))) {
		w.say(at.Key(podspec.AppArmorOfContainer+c.Name), podspec.UseAppArmorField)
	}
}

// placedPort is a port of a container.
type placedPort struct {
	at place
	i  int
	p  *corev1.ContainerPort
}

// path of the port as text. Names of ports are often the same in containers that work
// together, so this is written more often than other places.
func (p placedPort) path() string {
	path := "spec." + p.at.list + "[" + strconv.Itoa(p.at.i) + "].ports[" + strconv.Itoa(p.i) + "]"
	if at := p.at.w.at; at != nil {
		return at.String() + "." + path
	}
	return path
}

func (w *warner) ports(s *corev1.PodSpec) {
	ports := make([]placedPort, 0, 8)
	w.each(s, func(at place, c *corev1.Container) {
		for i := range c.Ports {
			p, at := &c.Ports[i], placedPort{at, i, &c.Ports[i]}
			if p.HostIP != "" && p.HostPort == 0 {
				w.out = append(w.out, fmt.Sprintf("%s: hostIP set without hostPort: {Name:%s HostPort:%d ContainerPort:%d Protocol:%s HostIP:%s}",
					at.path(), p.Name, p.HostPort, p.ContainerPort, p.Protocol, p.HostIP))
			}
			for _, other := range ports {
				if p.ContainerPort != other.p.ContainerPort || p.Protocol != other.p.Protocol {
					continue
				}
				switch {
				case p.HostIP == other.p.HostIP && p.HostPort == other.p.HostPort:
					w.out = append(w.out, at.path()+": duplicate port definition with "+other.path())
				case p.HostPort == 0 || other.p.HostPort == 0:
					w.out = append(w.out, at.path()+": overlapping port definition with "+other.path())
				case p.HostPort == other.p.HostPort && (p.HostIP == "") != (other.p.HostIP == ""):
					w.out = append(w.out, at.path()+": dangerously ambiguous port definition with "+other.path())
				}
			}
			ports = append(ports, at)
		}
	})
	for i, p := range ports {
		first := slices.IndexFunc(ports, func(o placedPort) bool { return o.p.Name == p.p.Name })
		if p.p.Name != "" && first < i {
			other := ports[first].path()
			w.out = append(w.out, p.path()+": duplicate port name "+strconv.Quote(p.p.Name)+" with "+other+", services and probes that select ports by name will use "+other)
		}
	}
}

func (w *warner) affinity(a *corev1.Affinity) {
	if a == nil {
		return
	}
	warn := func(name string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		at := w.child("spec", "affinity", name)
		for i, t := range required {
			if t.LabelSelector == nil {
				w.say(at.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i).Child("labelSelector"), "a null labelSelector results in matching no pod")
			}
		}
		for i, t := range preferred {
			if t.PodAffinityTerm.LabelSelector == nil {
				w.say(at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm", "labelSelector"), "a null labelSelector results in matching no pod")
			}
		}
	}
	if p := a.PodAffinity; p != nil {
		warn("podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		warn("podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}
