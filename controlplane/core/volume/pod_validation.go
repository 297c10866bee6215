// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// CheckPodVolumes checks the volumes of a Pod and returns the volumes that are right, by name. pod is the name of
// the Pod, empty for a template.
func CheckPodVolumes(f *valid.Field, volumes []corev1.Volume, pod string, isPod bool) map[string]*corev1.VolumeSource {
	created := sets.New[string]()
	for _, v := range volumes {
		if v.Ephemeral != nil && pod != "" {
			created.Insert(pod + "-" + v.Name)
		}
	}
	known := make(map[string]*corev1.VolumeSource, len(volumes))
	for i := range volumes {
		v, at, before := &volumes[i], f.Index(i), f.Len()
		checkSource(&at, v, pod, isPod)
		if at.NonEmpty("name", v.Name) {
			at.DNSLabel("name", v.Name)
		}
		if known[v.Name] != nil {
			at.Duplicate("name", v.Name)
		}
		if f.Len() == before {
			known[v.Name] = &v.VolumeSource
		}
		if c := v.PersistentVolumeClaim; c != nil && created.Has(c.ClaimName) {
			claim := at.Child("persistentVolumeClaim")
			claim.Invalid("claimName", c.ClaimName, "must not reference a PVC that gets created for an ephemeral volume")
		}
	}
	return known
}

// checkSource checks that a volume has one source, and that source.
func checkSource(f *valid.Field, v *corev1.Volume, pod string, isPod bool) { //nolint:funlen // a table of sources, in the order of Kubernetes' errors
	s := Sources{F: f}
	if e := v.EmptyDir; e != nil && s.Next("emptyDir") && e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		at := f.Child("emptyDir")
		at.Forbidden("sizeLimit", "SizeLimit field must be a valid resource quantity")
	}
	s.HostPath(v.HostPath)
	if g := v.GitRepo; g != nil && s.Next("gitRepo") {
		at := f.Child("gitRepo")
		at.NonEmpty("repository", g.Repository)
		at.Descending("directory", g.Directory)
	}
	s.GCEPersistentDisk(v.GCEPersistentDisk)
	s.AWSElasticBlockStore(v.AWSElasticBlockStore)
	if x := v.Secret; x != nil && s.Next("secret") {
		at := f.Child("secret")
		at.NonEmpty("secretName", x.SecretName)
		checkKeyFiles(&at, x.DefaultMode, x.Items)
	}
	s.NFS(v.NFS)
	checkPodISCSI(f, &s, v)
	if g := v.Glusterfs; g != nil {
		s.Glusterfs(g.EndpointsName, g.Path)
	}
	s.Flocker(v.Flocker)
	if c := v.PersistentVolumeClaim; c != nil {
		s.One("persistentVolumeClaim", "claimName", c.ClaimName)
	}
	if r := v.RBD; r != nil {
		s.RBD(r.CephMonitors, r.RBDImage)
	}
	if c := v.Cinder; c != nil && s.Next("cinder") {
		at := f.Child("cinder")
		at.NonEmpty("volumeID", c.VolumeID)
		checkLocalSecret(&at, c.SecretRef)
	}
	if c := v.CephFS; c != nil {
		s.CephFS(c.Monitors)
	}
	s.Quobyte(v.Quobyte)
	if d := v.DownwardAPI; d != nil && s.Next("downwarAPI") { // so spelled on the wire
		at := f.Child("downwardAPI")
		at.FileMode("defaultMode", d.DefaultMode)
		for i := range d.Items {
			checkDownwardFile(&at, &d.Items[i])
		}
	}
	s.FC(v.FC)
	if x := v.FlexVolume; x != nil {
		s.FlexVolume(x.Driver, x.Options)
	}
	if c := v.ConfigMap; c != nil && s.Next("configMap") {
		at := f.Child("configMap")
		at.NonEmpty("name", c.Name)
		checkKeyFiles(&at, c.DefaultMode, c.Items)
	}
	if a := v.AzureFile; a != nil {
		s.AzureFile(a.SecretName, a.ShareName)
	}
	if d := v.VsphereVolume; d != nil {
		s.One("vsphereVolume", "volumePath", d.VolumePath)
	}
	if p := v.PhotonPersistentDisk; p != nil {
		s.One("photonPersistentDisk", "pdID", p.PdID)
	}
	if p := v.PortworxVolume; p != nil {
		s.One("portworxVolume", "volumeID", p.VolumeID)
	}
	s.AzureDisk(v.AzureDisk)
	if o := v.StorageOS; o != nil {
		if at := s.StorageOS(o.VolumeName, o.VolumeNamespace); at != nil {
			checkLocalSecret(at, o.SecretRef)
		}
	}
	if p := v.Projected; p != nil && s.Next("projected") {
		at := f.Child("projected")
		at.FileMode("defaultMode", p.DefaultMode)
		checkProjected(&at, p.Sources)
	}
	if x := v.ScaleIO; x != nil {
		s.ScaleIO(x.Gateway, x.System, x.VolumeName)
	}
	if c := v.CSI; c != nil && s.Next("csi") {
		at := f.Child("csi")
		DriverName(&at, "driver", c.Driver)
		if r := c.NodePublishSecretRef; r != nil {
			secret := at.Child("nodePublishSecretRef")
			if secret.NonEmpty("name", r.Name) {
				at.Subdomain("name", r.Name)
			}
		}
	}
	if e := v.Ephemeral; e != nil && s.Next("ephemeral") {
		checkEphemeral(f, v, pod)
	}
	if i := v.Image; i != nil && s.Next("image") {
		at := f.Child("image")
		if isPod {
			at.NonEmpty("reference", i.Reference)
		}
		valid.RequiredOf(&at, "pullPolicy", i.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	}
	s.End()
}

func checkPodISCSI(f *valid.Field, s *Sources, v *corev1.Volume) {
	i := v.ISCSI
	if i == nil {
		return
	}
	if s.Next("iscsi") {
		at := f.Child("iscsi")
		target := ISCSI{
			TargetPortal: i.TargetPortal, IQN: i.IQN, Lun: i.Lun, Initiator: i.InitiatorName,
			Authenticates: i.DiscoveryCHAPAuth || i.SessionCHAPAuth, Prefixes: true,
		}
		if i.SecretRef != nil {
			target.Secret = &i.SecretRef.Name
		}
		target.Check(&at, nil)
	}
	if i.InitiatorName != nil && len(v.Name+":"+i.TargetPortal) > 64 {
		f.Invalid("name", v.Name, LongISCSIName)
	}
}

func checkLocalSecret(f *valid.Field, r *corev1.LocalObjectReference) {
	if r != nil {
		at := f.Child("secretRef")
		at.NonEmpty("name", r.Name)
	}
}

func checkEphemeral(f *valid.Field, v *corev1.Volume, pod string) {
	at := f.Child("ephemeral")
	if t := v.Ephemeral.VolumeClaimTemplate; t == nil {
		at.Required("volumeClaimTemplate", "")
	} else {
		template := at.Child("volumeClaimTemplate")
		metadata := template.Child("metadata")
		metadata.TemplateMetadata(&t.ObjectMeta)
		spec := template.Child("spec")
		CheckClaim(&spec, &t.Spec)
	}
	if pod != "" && v.Name != "" {
		claim := pod + "-" + v.Name
		for _, problem := range validation.IsDNS1123Subdomain(claim) {
			f.Invalid("name", v.Name, fmt.Sprintf("PVC name %q: %v", claim, problem))
		}
	}
}

// checkKeyFiles has the rules of keys that become files.
func checkKeyFiles(f *valid.Field, mode *int32, items []corev1.KeyToPath) {
	f.FileMode("defaultMode", mode)
	list := f.Child("items")
	for i := range items {
		at := list.Index(i)
		checkKeyFile(&at, &items[i])
	}
}

func checkKeyFile(f *valid.Field, k *corev1.KeyToPath) {
	f.NonEmpty("key", k.Key)
	f.NonEmpty("path", k.Path)
	f.Unreserved("path", k.Path)
	f.FileMode("mode", k.Mode)
}

// checkDownwardFile has the rules of what a Pod knows about itself in a file.
func checkDownwardFile(f *valid.Field, d *corev1.DownwardAPIVolumeFile) {
	f.NonEmpty("path", d.Path)
	f.Unreserved("path", d.Path)
	switch {
	case d.FieldRef != nil:
		at := f.Child("fieldRef")
		CheckFieldRef(&at, d.FieldRef, fileFields())
		if d.ResourceFieldRef != nil {
			f.Invalid(valid.Self, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case d.ResourceFieldRef != nil:
		at := f.Child("resourceFieldRef")
		CheckResourceRef(&at, d.ResourceFieldRef, true)
	default:
		f.Required(valid.Self, "one of fieldRef and resourceFieldRef is required")
	}
	f.FileMode("mode", d.Mode)
}

// checkProjected has the rules of several sources in one directory.
func checkProjected(f *valid.Field, sources []corev1.VolumeProjection) {
	paths := sets.New[string]()
	once := func(path, of string) {
		if paths.Has(path) {
			f.Invalid(valid.Self, of, "conflicting duplicate paths")
		}
		paths.Insert(path)
	}
	keys := func(at *valid.Field, name string, items []corev1.KeyToPath) {
		at.NonEmpty("name", name)
		list := at.Child("items")
		for i := range items {
			one := list.Index(i)
			checkKeyFile(&one, &items[i])
			if items[i].Path != "" {
				once(items[i].Path, name)
			}
		}
	}
	list := f.Child("sources")
	for i := range sources {
		p, at, set := &sources[i], list.Index(i), 0
		if p.Secret != nil {
			set++
			in := at.Child("secret")
			keys(&in, p.Secret.Name, p.Secret.Items)
		}
		if p.ConfigMap != nil {
			set++
			in := at.Child("configMap")
			keys(&in, p.ConfigMap.Name, p.ConfigMap.Items)
		}
		if p.DownwardAPI != nil {
			set++
			in := at.Child("downwardAPI")
			for i := range p.DownwardAPI.Items {
				file := &p.DownwardAPI.Items[i]
				checkDownwardFile(&in, file)
				if file.Path != "" {
					once(file.Path, file.Path)
				}
			}
		}
		if t := p.ServiceAccountToken; t != nil {
			set++
			in := at.Child("serviceAccountToken")
			checkTokenFile(f, &in, t)
		}
		if b := p.ClusterTrustBundle; b != nil {
			set++
			in := at.Child("clusterTrustBundle")
			checkBundleFile(&in, b)
			once(b.Path, b.Path)
		}
		if c := p.PodCertificate; c != nil {
			set++
			in := at.Child("podCertificate")
			checkCertificateFiles(&in, c, once)
		}
		if set > 1 {
			at.Forbidden(valid.Self, "may not specify more than 1 volume type per source")
		}
	}
}

func checkTokenFile(volume, f *valid.Field, t *corev1.ServiceAccountTokenProjection) {
	switch s := kind.Value(t.ExpirationSeconds); {
	case s < 10*60:
		f.Invalid("expirationSeconds", s, "may not specify a duration less than 10 minutes")
	case s > 1<<32:
		f.Invalid("expirationSeconds", s, "may not specify a duration larger than 2^32 seconds")
	}
	if volume.NonEmpty("path", t.Path) {
		volume.Unreserved("path", t.Path)
	}
}
