// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"maps"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Sources checks a choice of one kind of volume, whose names are those of the
// fields.
type Sources struct {
	// F is the object that has one field for each kind of volume.
	F   *valid.Field
	set bool
}

// Next reports whether a source is the first, which is the one to check.
func (s *Sources) Next(name string) bool {
	if s.set {
		s.F.Forbidden(name, "may not specify more than 1 volume type")
		return false
	}
	s.set = true
	return true
}

// End requires that there was one.
func (s *Sources) End() {
	if !s.set {
		s.F.Required(valid.Self, "must specify a volume type")
	}
}

// HostPath checks a directory of the node. Like the other methods about sources
// it takes nil for a source that is not set.
func (s *Sources) HostPath(v *corev1.HostPathVolumeSource) {
	if v == nil || !s.Next("hostPath") {
		return
	}
	f := s.F.Child("hostPath")
	if !f.NonEmpty("path", v.Path) {
		return
	}
	f.NoBacksteps("path", v.Path)
	if v.Type != nil {
		valid.Supported(&f, "type", *v.Type, corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)
	}
}

// GCEPersistentDisk checks a disk.
func (s *Sources) GCEPersistentDisk(v *corev1.GCEPersistentDiskVolumeSource) {
	if v != nil && s.Next("gcePersistentDisk") {
		f := s.F.Child("persistentDisk")
		f.NonEmpty("pdName", v.PDName)
		checkPartition(&f, v.Partition)
	}
}

// AWSElasticBlockStore checks a disk.
func (s *Sources) AWSElasticBlockStore(v *corev1.AWSElasticBlockStoreVolumeSource) {
	if v != nil && s.Next("awsElasticBlockStore") {
		f := s.F.Child("awsElasticBlockStore")
		f.NonEmpty("volumeID", v.VolumeID)
		checkPartition(&f, v.Partition)
	}
}

func checkPartition(f *valid.Field, n int32) {
	if n < 0 || n > 255 { // 0 is the whole disk, but not part of what is asked for
		f.Invalid("partition", n, validation.InclusiveRangeError(1, 255))
	}
}

// NFS checks an export of a file server.
func (s *Sources) NFS(v *corev1.NFSVolumeSource) {
	if v != nil && s.Next("nfs") {
		f := s.F.Child("nfs")
		f.NonEmpty("server", v.Server)
		f.NonEmpty("path", v.Path)
		if !path.IsAbs(v.Path) {
			f.Invalid("path", v.Path, "must be an absolute path")
		}
	}
}

// Quobyte checks a volume of that system.
func (s *Sources) Quobyte(v *corev1.QuobyteVolumeSource) {
	if v == nil || !s.Next("quobyte") {
		return
	}
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	f := s.F.Child("quobyte")
	switch {
	case v.Registry == "":
		f.Required("registry", pairs)
	case len(v.Tenant) > 64:
		f.Required("tenant", "must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(v.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				f.Invalid("registry", v.Registry, pairs)
			}
		}
	}
	f.NonEmpty("volume", v.Volume)
}

// Glusterfs checks a volume of that system. The field is returned for what else
// there is to check, nil if there is nothing.
func (s *Sources) Glusterfs(endpoints, dir string) *valid.Field {
	if !s.Next("glusterfs") {
		return nil
	}
	f := s.F.Child("glusterfs")
	f.NonEmpty("endpoints", endpoints)
	f.NonEmpty("path", dir)
	return &f
}

// Flocker checks a dataset.
func (s *Sources) Flocker(v *corev1.FlockerVolumeSource) {
	if v == nil || !s.Next("flocker") {
		return
	}
	f := s.F.Child("flocker")
	switch {
	case v.DatasetName == "" && v.DatasetUUID == "":
		f.Required(valid.Self, "one of datasetName and datasetUUID is required")
	case v.DatasetName != "" && v.DatasetUUID != "":
		f.Invalid(valid.Self, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(v.DatasetName, "/") {
		f.Invalid("datasetName", v.DatasetName, "must not contain '/'")
	}
}

// RBD checks a block device of Ceph.
func (s *Sources) RBD(monitors []string, image string) {
	if s.Next("rbd") {
		f := s.F.Child("rbd")
		if len(monitors) == 0 {
			f.Required("monitors", "")
		}
		f.NonEmpty("image", image)
	}
}

// CephFS checks a file system of Ceph.
func (s *Sources) CephFS(monitors []string) {
	if s.Next("cephFS") && len(monitors) == 0 {
		f := s.F.Child("cephfs")
		f.Required("monitors", "")
	}
}

// FC checks a device of a fibre channel.
func (s *Sources) FC(v *corev1.FCVolumeSource) {
	if v == nil || !s.Next("fc") {
		return
	}
	f := s.F.Child("fc")
	switch {
	case len(v.TargetWWNs) == 0 && len(v.WWIDs) == 0:
		f.Required("targetWWNs", "must specify either targetWWNs or wwids, but not both")
	case len(v.TargetWWNs) > 0 && len(v.WWIDs) > 0:
		f.Invalid("targetWWNs", v.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")
	}
	if len(v.TargetWWNs) > 0 {
		if v.Lun == nil {
			f.Required("lun", "lun is required if targetWWNs is specified")
		} else {
			f.Between("lun", int64(*v.Lun), 0, 255)
		}
	}
}

// FlexVolume checks a volume of a driver on the node.
func (s *Sources) FlexVolume(driver string, options map[string]string) {
	if !s.Next("flexVolume") {
		return
	}
	f := s.F.Child("flexVolume")
	f.NonEmpty("driver", driver)
	list := f.Child("options")
	for _, key := range slices.Sorted(maps.Keys(options)) {
		domain, _, _ := strings.Cut(key, "/")
		if domain = "." + strings.ToLower(domain); strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			at := list.Key(key)
			at.Invalid(valid.Self, key, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

// AzureFile checks a share. The field is returned as by Glusterfs.
func (s *Sources) AzureFile(secret, share string) *valid.Field {
	if !s.Next("azureFile") {
		return nil
	}
	f := s.F.Child("azureFile")
	f.NonEmpty("secretName", secret)
	f.NonEmpty("shareName", share)
	return &f
}

// AzureDisk checks a disk.
func (s *Sources) AzureDisk(v *corev1.AzureDiskVolumeSource) {
	if v == nil || !s.Next("azureDisk") {
		return
	}
	f := s.F.Child("azureDisk")
	f.NonEmpty("diskName", v.DiskName)
	f.NonEmpty("diskURI", v.DataDiskURI)
	if v.CachingMode != nil {
		valid.Supported(&f, "cachingMode", *v.CachingMode, corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)
	}
	if v.Kind == nil {
		return
	}
	valid.Supported(&f, "kind", *v.Kind, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)
	managed := *v.Kind == corev1.AzureManagedDisk
	switch {
	case managed && !strings.HasPrefix(v.DataDiskURI, "/subscriptions/"):
		valid.NotSupported(&f, "diskURI", v.DataDiskURI, "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}")
	case !managed && !strings.HasPrefix(v.DataDiskURI, "https://"):
		valid.NotSupported(&f, "diskURI", v.DataDiskURI, "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
	}
}

// One checks a source of which one text is all that is needed.
func (s *Sources) One(name, needed, value string) {
	if s.Next(name) {
		f := s.F.Child(name)
		f.NonEmpty(needed, value)
	}
}

// ScaleIO checks a volume of that system.
func (s *Sources) ScaleIO(gateway, system, volume string) {
	if s.Next("scaleIO") {
		f := s.F.Child("scaleIO")
		f.NonEmpty("gateway", gateway)
		f.NonEmpty("system", system)
		f.NonEmpty("volumeName", volume)
	}
}

// StorageOS checks a volume of that system. The field is returned as by
// Glusterfs.
func (s *Sources) StorageOS(name, namespace string) *valid.Field {
	if !s.Next("storageos") {
		return nil
	}
	f := s.F.Child("storageos")
	if f.NonEmpty("volumeName", name) {
		f.DNSLabel("volumeName", name)
	}
	if namespace != "" {
		f.DNSLabel("volumeNamespace", namespace)
	}
	return &f
}

// iscsiName is the form of the names of targets and initiators, by what they
// begin with.
var iscsiNames = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
		"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
		"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
	}
})

// ISCSI is what the two forms of this source have in common.
type ISCSI struct {
	TargetPortal, IQN string
	Lun               int32
	Initiator         *string
	Authenticates     bool // and so needs a secret
	// Secret is the name of the secret; nil: none.
	Secret *string
	// Prefixes are named when a name has none of them.
	Prefixes bool
}

// Check has the rules of the source, which is at f.
func (v *ISCSI) Check(f *valid.Field, long func()) {
	f.NonEmpty("targetPortal", v.TargetPortal)
	if long != nil {
		long()
	}
	if f.NonEmpty("iqn", v.IQN) {
		v.name(f, "iqn", v.IQN)
	}
	f.Between("lun", int64(v.Lun), 0, 255)
	if v.Authenticates && v.Secret == nil {
		f.Required("secretRef", "")
	}
	if v.Secret != nil && *v.Secret == "" && !v.Prefixes {
		at := f.Child("secretRef")
		at.Required("name", "")
	}
	if v.Initiator != nil {
		v.name(f, "initiatorname", *v.Initiator)
	}
}

func (v *ISCSI) name(f *valid.Field, field, name string) {
	const invalid = "must be valid format"
	for prefix, pattern := range iscsiNames() {
		if strings.HasPrefix(name, prefix) {
			if !pattern.MatchString(name) {
				f.Invalid(field, name, invalid)
			}
			return
		}
	}
	if v.Prefixes {
		f.Invalid(field, name, invalid+" starting with iqn, eui, or naa")
	} else {
		f.Invalid(field, name, invalid)
	}
}

// DriverName checks the name of a CSI driver.
func DriverName(f *valid.Field, name, driver string) {
	if !f.NonEmpty(name, driver) {
		return
	}
	if len(driver) > 63 {
		f.TooLong(name, 63)
	}
	f.Problems(name, driver, validation.IsDNS1123Subdomain(strings.ToLower(driver)))
}
