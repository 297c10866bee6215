// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateVolume(v, old *corev1.PersistentVolume) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	CheckVolume(&spec, &v.Spec, v.Name, false)
	if old != nil {
		CheckVolume(&spec, &v.Spec, v.Name, false) // Kubernetes names the causes of a refusal twice
		checkVolumeChange(&f, &v.Spec, &old.Spec)
	}
	return errs
}

func checkVolumeChange(f *valid.Field, now, before *corev1.PersistentVolumeSpec) {
	source := &now.PersistentVolumeSource
	if before.CSI != nil && before.CSI.ControllerExpandSecretRef == nil && now.CSI != nil && now.CSI.ControllerExpandSecretRef != nil {
		source = source.DeepCopy()
		source.CSI.ControllerExpandSecretRef = nil
	}
	spec := f.Child("spec")
	if !equality.Semantic.DeepEqual(*source, before.PersistentVolumeSource) {
		spec.Forbidden("persistentvolumesource", "spec.persistentvolumesource is immutable after creation\n"+
			valid.Difference(before.PersistentVolumeSource, *source))
	}
	f.Unchanged("volumeMode", now.VolumeMode, before.VolumeMode)
	if before.NodeAffinity != nil {
		f.Unchanged("nodeAffinity", now.NodeAffinity, before.NodeAffinity)
	}
	if before.VolumeAttributesClassName != nil && now.VolumeAttributesClassName == nil {
		spec.Forbidden("volumeAttributesClassName", "update from non-nil value to nil is forbidden")
	}
}

// CheckVolume has the rules of the spec of a volume of that name; one inside
// another object, such as a VolumeAttachment, is inline.
func CheckVolume(f *valid.Field, s *corev1.PersistentVolumeSpec, name string, inline bool) {
	const context = " in the context of inline volumes"
	refuse := func(name string, set bool) {
		if inline && set {
			f.Forbidden(name, "may not be specified"+context)
		}
	}
	refuse("claimRef", s.ClaimRef != nil)
	refuse("capacity", len(s.Capacity) > 0)
	if inline && s.CSI == nil {
		f.Required("csi", "has to be specified"+context)
	}
	if len(s.AccessModes) == 0 {
		f.Required("accessModes", "")
	}
	checkModes(f, s.AccessModes)
	if !inline {
		checkCapacity(f, s.Capacity)
	}
	if p := s.PersistentVolumeReclaimPolicy; p != "" && !inline {
		valid.Supported(f, "persistentVolumeReclaimPolicy", p,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)
	} else if p != "" && p != corev1.PersistentVolumeReclaimRetain {
		f.Forbidden("persistentVolumeReclaimPolicy", "may only be Retain"+context)
	}
	refuse("nodeAffinity", s.NodeAffinity != nil)
	if s.NodeAffinity != nil && !inline {
		at := f.Child("nodeAffinity")
		if s.NodeAffinity.Required == nil {
			at.Required("required", "must specify required node constraints")
		} else {
			required := at.Child("required")
			required.NodeSelector(s.NodeAffinity.Required, true)
		}
	}
	checkVolumeSource(f, s, name)
	if s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		f.Forbidden("persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
	}
	refuse("storageClassName", s.StorageClassName != "")
	if s.StorageClassName != "" && !inline {
		f.Subdomain("storageClassName", s.StorageClassName)
	}
	if !inline {
		checkVolumeMode(f, s.VolumeMode)
	} else if s.VolumeMode != nil && *s.VolumeMode != corev1.PersistentVolumeFilesystem {
		f.Forbidden("volumeMode", "may not specify volumeMode other than Filesystem"+context)
	}
	if class := s.VolumeAttributesClassName; class != nil {
		if *class == "" {
			f.Required("volumeAttributesClassName", "an empty string is disallowed")
		} else {
			f.Subdomain("volumeAttributesClassName", *class)
		}
		if s.CSI == nil {
			f.Required("csi", "has to be specified when using volumeAttributesClassName")
		}
	}
}

func checkCapacity(f *valid.Field, capacity corev1.ResourceList) {
	if len(capacity) == 0 {
		f.Required("capacity", "")
	}
	if _, ok := capacity[corev1.ResourceStorage]; !ok || len(capacity) > 1 {
		f.Add(field.NotSupported(f.PathOf("capacity"), capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	list := f.Child("capacity")
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		at, q := list.Key(string(name)), capacity[name]
		if q.Value() < 0 {
			at.Invalid(valid.Self, q.Value(), "must be a valid resource quantity")
		}
		if q.Sign() <= 0 {
			at.Invalid(valid.Self, q.String(), "must be greater than zero")
		}
	}
}

func checkVolumeSource(f *valid.Field, s *corev1.PersistentVolumeSpec, name string) {
	v := Sources{F: f}
	v.HostPath(s.HostPath)
	v.GCEPersistentDisk(s.GCEPersistentDisk)
	v.AWSElasticBlockStore(s.AWSElasticBlockStore)
	if g := s.Glusterfs; g != nil {
		if at := v.Glusterfs(g.EndpointsName, g.Path); at != nil && g.EndpointsNamespace != nil {
			if *g.EndpointsNamespace == "" {
				at.Invalid("endpointsNamespace", "", "if the endpointnamespace is set, it must be a valid namespace name")
			} else {
				at.Namespace("endpointsNamespace", *g.EndpointsNamespace)
			}
		}
	}
	v.Flocker(s.Flocker)
	v.NFS(s.NFS)
	if r := s.RBD; r != nil {
		v.RBD(r.CephMonitors, r.RBDImage)
	}
	v.Quobyte(s.Quobyte)
	if c := s.CephFS; c != nil {
		v.CephFS(c.Monitors)
	}
	if i := s.ISCSI; i != nil && v.Next("iscsi") {
		checkISCSI(f, i, name)
	}
	if c := s.Cinder; c != nil && v.Next("cinder") {
		at := f.Child("cinder")
		at.NonEmpty("volumeID", c.VolumeID)
		checkSecretRef(&at, c.SecretRef)
	}
	v.FC(s.FC)
	if x := s.FlexVolume; x != nil {
		v.FlexVolume(x.Driver, x.Options)
	}
	if a := s.AzureFile; a != nil {
		if at := v.AzureFile(a.SecretName, a.ShareName); at != nil && a.SecretNamespace != nil {
			at.NonEmpty("secretNamespace", *a.SecretNamespace)
		}
	}
	if d := s.VsphereVolume; d != nil {
		v.One("vsphereVolume", "volumePath", d.VolumePath)
	}
	if p := s.PhotonPersistentDisk; p != nil {
		v.One("photonPersistentDisk", "pdID", p.PdID)
	}
	if p := s.PortworxVolume; p != nil {
		v.One("portworxVolume", "volumeID", p.VolumeID)
	}
	v.AzureDisk(s.AzureDisk)
	if x := s.ScaleIO; x != nil {
		v.ScaleIO(x.Gateway, x.System, x.VolumeName)
	}
	if l := s.Local; l != nil && v.Next("local") {
		at := f.Child("local")
		at.NonEmpty("path", l.Path)
		at.NoBacksteps("path", l.Path)
		if s.NodeAffinity == nil {
			f.Required("nodeAffinity", "Local volume requires node affinity")
		}
	}
	if o := s.StorageOS; o != nil {
		if at := v.StorageOS(o.VolumeName, o.VolumeNamespace); at != nil && o.SecretRef != nil {
			secret := at.Child("secretRef")
			secret.NonEmpty("name", o.SecretRef.Name)
			secret.NonEmpty("namespace", o.SecretRef.Namespace)
		}
	}
	if c := s.CSI; c != nil && v.Next("csi") {
		checkCSI(f, c)
	}
	v.End()
}

func checkISCSI(f *valid.Field, i *corev1.ISCSIPersistentVolumeSource, name string) {
	at := f.Child("iscsi")
	target := ISCSI{
		TargetPortal: i.TargetPortal, IQN: i.IQN, Lun: i.Lun, Initiator: i.InitiatorName,
		Authenticates: i.DiscoveryCHAPAuth || i.SessionCHAPAuth,
	}
	if i.SecretRef != nil {
		target.Secret = &i.SecretRef.Name
	}
	target.Check(&at, func() {
		if i.InitiatorName != nil && len(name+":"+i.TargetPortal) > 64 {
			at.Invalid("targetportal", i.TargetPortal, LongISCSIName)
		}
	})
}

// LongISCSIName says that the name of a volume and its portal make too long a
// name for a device.
const LongISCSIName = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."

func checkSecretRef(in *valid.Field, r *corev1.SecretReference) {
	if r != nil {
		f := in.Child("secretRef")
		f.NonEmpty("name", r.Name)
		f.NonEmpty("namespace", r.Namespace)
	}
}

func checkCSI(in *valid.Field, c *corev1.CSIPersistentVolumeSource) {
	f := in.Child("csi")
	DriverName(&f, "driver", c.Driver)
	f.NonEmpty("volumeHandle", c.VolumeHandle)
	ref := func(name string, r *corev1.SecretReference) {
		if r == nil {
			return
		}
		at := f.Child(name)
		if at.NonEmpty("name", r.Name) {
			at.Subdomain("name", r.Name)
		}
		if at.NonEmpty("namespace", r.Namespace) {
			at.DNSLabel("namespace", r.Namespace)
		}
	}
	ref("controllerPublishSecretRef", c.ControllerPublishSecretRef)
	ref("controllerExpandSecretRef", c.ControllerExpandSecretRef)
	ref("nodePublishSecretRef", c.NodePublishSecretRef)
	ref("nodeExpandSecretRef", c.NodeExpandSecretRef)
}
