// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/steer-dev/steer/storage"
)

// layout is where the keys are. It is a prefix that ends with a slash.
//
// Objects are where kube-apiserver has them: built-in kinds at PREFIX/pods/default/web,
// PREFIX/deployments/default/web or PREFIX/services/specs/default/web (see builtIn), custom
// resources at PREFIX/GROUP/PLURAL/default/one. What the store itself keeps is below
// PREFIX/.steer.
type layout string

func newLayout(prefix string) layout { return layout("/" + strings.Trim(prefix, "/") + "/") }

// The keys of the store itself.
func (l layout) owner() string    { return string(l) + ".steer/owner" }
func (l layout) leader() string   { return string(l) + ".steer/leader" }
func (l layout) resigned() string { return string(l) + ".steer/resigned" }
func (l layout) clock() string    { return string(l) + ".steer/clock" }
func (l layout) terms() string    { return string(l) + ".steer/terms" }

// attempt is the key that withdraws an attempt at a write.
func (l layout) attempt(id string) string { return string(l) + ".steer/attempts/" + id }

// paths are the paths of built-in kinds below the prefix, where they are not their buckets,
// and the way back.
type paths struct {
	path   map[string]string // by bucket
	bucket map[string]string // by path
}

// builtIn are the kinds of Kubernetes 1.37: kube-apiserver leaves out the groups of all but
// two, and some resources have the names of the first versions.
var builtIn = sync.OnceValue(func() paths {
	p := paths{path: map[string]string{
		"services": "services/specs", "endpoints": "services/endpoints", "nodes": "minions",
		"replicationcontrollers": "controllers", "networking.k8s.io/ingresses": "ingress",
	}, bucket: map[string]string{}}
	for group, plurals := range map[string]string{
		"admissionregistration.k8s.io": "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations " +
			"validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations",
		"apps":                         "controllerrevisions daemonsets deployments replicasets statefulsets",
		"autoscaling":                  "horizontalpodautoscalers",
		"batch":                        "cronjobs jobs",
		"certificates.k8s.io":          "certificatesigningrequests clustertrustbundles podcertificaterequests",
		"coordination.k8s.io":          "leasecandidates leases",
		"discovery.k8s.io":             "endpointslices",
		"flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
		"internal.apiserver.k8s.io":    "storageversions",
		"networking.k8s.io":            "ingressclasses ipaddresses networkpolicies servicecidrs",
		"node.k8s.io":                  "runtimeclasses",
		"policy":                       "poddisruptionbudgets",
		"rbac.authorization.k8s.io":    "clusterrolebindings clusterroles rolebindings roles",
		"resource.k8s.io":              "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates resourceslices",
		"scheduling.k8s.io":            "priorityclasses",
		"storage.k8s.io":               "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses",
		"storagemigration.k8s.io":      "storageversionmigrations",
	} {
		for plural := range strings.FieldsSeq(plurals) {
			p.path[group+"/"+plural] = plural
		}
	}
	for bucket, path := range p.path {
		p.bucket[path] = bucket
	}
	return p
})

// key returns the key of an object. Different keys of a store have different ones.
func (l layout) key(k storage.Key) string {
	return string(l) + pathOf(k.Bucket) + "/" + k.Name
}

// pathOf returns where the objects of a bucket are, as parse expects it: the path of a
// built-in kind, PLURAL, GROUP/PLURAL, or one segment that begins with a percent sign.
func pathOf(bucket string) string {
	if path, ok := builtIn().path[bucket]; ok {
		return path
	}
	group, plural, two := strings.Cut(bucket, "/")
	plain := !two && !strings.Contains(bucket, ".") && bucket != "services" ||
		two && strings.Contains(group, ".") && plural != "" && !strings.Contains(plural, "/")
	if _, taken := builtIn().bucket[bucket]; taken || !plain || bucket == "" || strings.ContainsAny(bucket[:1], "%.") {
		return "%" + strings.NewReplacer("/", "%2F", "%", "%25").Replace(bucket)
	}
	return bucket
}

// parse returns the key of an object, and whether it is one.
func (l layout) parse(raw string) (storage.Key, bool) {
	first, rest, ok := strings.Cut(strings.TrimPrefix(raw, string(l)), "/")
	switch {
	case !ok || first == "" || strings.HasPrefix(first, "."):
		return storage.Key{}, false
	case strings.HasPrefix(first, "%"):
		return storage.Key{Bucket: strings.NewReplacer("%2F", "/", "%25", "%").Replace(first[1:]), Name: rest}, rest != ""
	}
	path, name, two := first, rest, strings.Contains(first, ".") || first == "services"
	if two {
		var second string
		if second, name, ok = strings.Cut(rest, "/"); !ok || second == "" {
			return storage.Key{}, false
		}
		path += "/" + second
	}
	if bucket, ok := builtIn().bucket[path]; ok {
		return storage.Key{Bucket: bucket, Name: name}, name != ""
	}
	return storage.Key{Bucket: path, Name: name}, name != "" && first != "services"
}

// header begins a value; the offset of its revision follows, and a line feed.
const header = "steer/1 "

// encode returns the value of a write as it is stored: without its revision, which is
// not known yet.
func encode(w *storage.Write) []byte {
	out := make([]byte, 0, len(header)+8+len(w.Value))
	out = append(out, header...)
	out = strconv.AppendInt(out, int64(w.Stamp), 10)
	out = append(out, '\n')
	return append(out, w.Value...)
}

// decode returns the stored value of a key with its revision.
func decode(key string, raw []byte, rev storage.Revision) (value []byte, stamp int, err error) {
	line, payload, ok := bytes.Cut(raw, []byte{'\n'})
	digits, known := bytes.CutPrefix(line, []byte(header))
	if ok && known {
		stamp, err = strconv.Atoi(string(digits))
	}
	if !ok || !known || err != nil || stamp < 0 || stamp > len(payload) {
		return nil, 0, fmt.Errorf("etcd: the value of %q at revision %d was not written by this program: remove the key with etcdctl del", key, rev)
	}
	w := storage.Write{Value: payload, Stamp: stamp}
	return w.Stamped(rev), stamp, nil
}

// isOwn reports whether a key is one of the store itself.
func (l layout) isOwn(raw string) bool { return strings.HasPrefix(raw, string(l)+".steer/") }
