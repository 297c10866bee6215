// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/storage"
)

// DefaultName is the account of Pods that name none.
const DefaultName = "default"

// The volume through which a Pod gets its token.
const (
	volumePrefix = "kube-api-access-"
	mountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
	volumeMode   = int32(0o644)
)

// enforceSecrets on an account restricts its Pods to the Secrets that it lists.
const enforceSecrets = "kubernetes.io/enforce-mountable-secrets"

// Admission is the admission plugin ServiceAccount: it gives new Pods an account,
// its image pull secrets and a volume with its token, and refuses those whose
// account does not exist.
type Admission struct {
	// Store holds the accounts.
	Store storage.Store
	// Suffix returns n random characters for the name of a volume.
	Suffix func(n int) string
	// Patience is for how long after the creation of a namespace a Pod waits for
	// its default account. 0: not at all.
	Patience time.Duration
	// Cache keeps accounts that were read. nil: none.
	Cache *AccountCache
}

var (
	_ resource.Admission = Admission{}
	_ resource.Mutator   = Admission{}
)

// Mutates implements [resource.Mutator].
func (a Admission) Mutates(r *resource.AdmissionRequest) bool {
	_, ok := newPod(r)
	return ok
}

// newPod returns the Pod that a request creates.
func newPod(r *resource.AdmissionRequest) (*corev1.Pod, bool) {
	if r.Resource == nil || r.Resource.Group != "" || r.Resource.Plural != "pods" || r.Subresource != "" || r.Operation != resource.Create {
		return nil, false
	}
	pod, ok := r.Object.(*corev1.Pod)
	return pod, ok
}

// Admit implements [resource.Admission].
func (a Admission) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	pod, ok := newPod(r)
	// The kubelet that runs a mirrored Pod has it from a file, and would take any
	// other for a different one.
	if !ok || isMirror(pod) {
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = DefaultName
	}
	account, err := a.account(ctx, r.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return admission.Forbidden(r, "error looking up service account %s/%s: %w", r.Namespace, pod.Spec.ServiceAccountName, err)
	}
	if mounts(account, pod) {
		a.mount(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return nil
}

// Validate implements [resource.Admission].
func (a Admission) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	pod, ok := newPod(r)
	if !ok {
		return nil
	}
	if isMirror(pod) {
		return validateMirror(r, pod)
	}
	if pod.Spec.ServiceAccountName == "" { // another admission took it away
		return admission.Forbidden(r, "no service account specified for pod %s/%s", r.Namespace, pod.Name)
	}
	account, err := a.account(ctx, r.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return admission.Forbidden(r, "error looking up service account %s/%s: %w", r.Namespace, pod.Spec.ServiceAccountName, err)
	}
	if account.Annotations[enforceSecrets] == "true" {
		if err := onlyListed(account, pod); err != nil {
			return admission.Forbidden(r, "%w", err)
		}
	}
	return nil
}

func isMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// validateMirror refuses what a Pod cannot have whose kubelet runs it without
// asking the API server.
func validateMirror(r *resource.AdmissionRequest, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return admission.Forbidden(r, "a mirror pod may not reference service accounts")
	}
	for range secretsOf(pod) {
		return admission.Forbidden(r, "a mirror pod may not reference secrets")
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return admission.Forbidden(r, "a mirror pod may not use ServiceAccountToken volume projections")
		}
	}
	return nil
}

// account reads an account, which is shared and must not be changed. A client that learns of a new namespace by a watch may be
// faster than its default account, which is about to be made; that is waited for.
func (a Admission) account(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	rec := a.Store.Get(storage.Key{Bucket: accounts, Name: namespace + "/" + name})
	if account := a.Cache.version(rec); account != nil { // without a view, for which the next write would pay
		return account, nil
	}
	view := a.Store.Latest()
	var err error
	for {
		var account *corev1.ServiceAccount
		if account, err = a.Cache.read(view, namespace, name); err == nil {
			return account, nil
		}
		if name != DefaultName || a.Patience == 0 {
			break
		}
		left := a.Patience - time.Since(created(view.Get(storage.Key{Bucket: namespaces, Name: namespace})))
		if left <= 0 || !a.await(ctx, namespace, view.Revision(), left) {
			break
		}
		view = a.Store.Latest()
	}
	if apierrors.IsNotFound(err) { // clients know it by the singular
		err = apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccount"}, name)
	}
	return nil, err
}

// await waits until the accounts of a namespace change, and reports whether they
// did in time.
func (a Admission) await(ctx context.Context, namespace string, after storage.Revision, limit time.Duration) bool {
	cursor, err := a.Store.Watch(storage.Range{Bucket: accounts, Prefix: namespace + "/"}, after)
	if err != nil {
		return false
	}
	defer cursor.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err = cursor.Next(ctx)
	return err == nil
}

// mounts reports whether a Pod gets a token. The Pod has the last word.
func mounts(account *corev1.ServiceAccount, pod *corev1.Pod) bool {
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case account.AutomountServiceAccountToken != nil:
		return *account.AutomountServiceAccountToken
	}
	return true
}

// mount gives every container the token that has nothing in its place. A volume
// by the name of ours, such as in a copy of another Pod, is taken for it.
func (a Admission) mount(pod *corev1.Pod) {
	name := ""
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, volumePrefix) })
	if i >= 0 {
		name = pod.Spec.Volumes[i].Name
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mountPath }) {
				continue
			}
			if name == "" {
				name = volumePrefix + a.Suffix(5)
				pod.Spec.Volumes = append(pod.Spec.Volumes, tokenVolume(name))
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: mountPath})
		}
	}
}

// tokenVolume has what a client in a Pod needs to find and to trust the API
// server: a token, the authority of its certificate, and the namespace.
func tokenVolume(name string) corev1.Volume {
	mode, seconds := volumeMode, int64(podLife/time.Second)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: &mode,
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: corev1.ServiceAccountTokenKey, ExpirationSeconds: &seconds}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: RootCAName},
				Items:                []corev1.KeyToPath{{Key: corev1.ServiceAccountRootCAKey, Path: corev1.ServiceAccountRootCAKey}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path:     corev1.ServiceAccountNamespaceKey,
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
