// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// namespaces is the bucket of Namespaces.
const namespaces = "namespaces"

// AccountsControllerName is the name of the controller of [NewDefaultAccounts].
const AccountsControllerName = "serviceaccount-controller"

// RootCAName is the ConfigMap by which Pods come to the certificate of the API
// server's authority.
const RootCAName = "kube-root-ca.crt"

// Settling is how long what a new namespace has is left to the request that
// creates it, which makes it itself; see [NamespaceObject.Request].
const Settling = 2 * time.Second

// NamespaceObject is a controller that keeps one object in every namespace: it makes it
// where it is missing, and mends it where it is not as it should be.
type NamespaceObject struct {
	name, user string
	resource   step.Resource
	object     string
	// content returns the members of the object besides its metadata, as JSON
	// without the braces; "" for none.
	content func() (string, error)
	// about describes the object to its readers, in an annotation; "" for nothing.
	about string
	// fields of the object that the controller owns, as in managedFields.
	fields string

	// living are the namespaces that are not being deleted, with the time of
	// their creation.
	living map[string]time.Time
	// due are those to look at; at once, also where they are new, if what they had
	// was deleted.
	due map[string]bool
	// next is when the first of those is old enough that were too new.
	next time.Time
}

var (
	_ step.Controller = (*NamespaceObject)(nil)
	_ step.Waker      = (*NamespaceObject)(nil)
)

// NewDefaultAccounts returns the controller of the ServiceAccount "default".
func NewDefaultAccounts() *NamespaceObject {
	return newNamespaceObject(AccountsControllerName, step.KubeSystem+"service-account-controller",
		step.Resource{Bucket: accounts, Version: "v1", Plural: accounts, Kind: "ServiceAccount", Namespaced: true}, DefaultName,
		func() (string, error) { return "", nil }, "", "")
}

// NewRootCAs returns the controller of the ConfigMap "kube-root-ca.crt" with the
// certificates that ca returns, in PEM.
func NewRootCAs(ca func() ([]byte, error)) *NamespaceObject {
	return newNamespaceObject("root-ca-certificate-publisher-controller", step.KubeSystem+"root-ca-cert-publisher",
		step.Resource{Bucket: "configmaps", Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}, RootCAName,
		func() (string, error) {
			roots, err := ca()
			if err != nil {
				return "", err
			}
			data, err := json.Marshal(map[string]string{corev1.ServiceAccountRootCAKey: string(roots)})
			return `"data":` + string(data), err
		}, rootCAAbout, `{"f:data":{".":{},"f:ca.crt":{}},"f:metadata":{"f:annotations":{".":{},"f:kubernetes.io/description":{}}}}`)
}

// rootCAAbout is what clusters say about "kube-root-ca.crt".
const rootCAAbout = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as " +
	"the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."

// description is the annotation that says what an object is for.
const description = "kubernetes.io/description"

func newNamespaceObject(name, user string, r step.Resource, object string, content func() (string, error), about, fields string) *NamespaceObject {
	k := &NamespaceObject{name: name, user: user, resource: r, object: object, content: content, about: about, fields: fields}
	k.forget()
	return k
}

func (k *NamespaceObject) forget() { k.living, k.due = map[string]time.Time{}, map[string]bool{} }

// Name implements [step.Controller].
func (k *NamespaceObject) Name() string { return k.name }

// Reset implements [step.Controller].
func (k *NamespaceObject) Reset(view storage.View) {
	k.forget()
	for rec := range view.Ascend(namespaces, "", "") {
		k.see(rec)
	}
}

// Filter implements [step.Controller].
func (k *NamespaceObject) Filter(e storage.Event) bool {
	switch e.Record.Key.Bucket {
	case namespaces:
		return true
	case k.resource.Bucket:
		_, name := step.SplitName(e.Record.Key.Name)
		return name == k.object
	}
	return false
}

// Handle implements [step.Controller].
func (k *NamespaceObject) Handle(e storage.Event) {
	switch e.Record.Key.Bucket {
	case namespaces:
		if e.Deleted {
			delete(k.living, e.Record.Key.Name)
			delete(k.due, e.Record.Key.Name)
			return
		}
		k.see(e.Record)
	case k.resource.Bucket:
		namespace, name := step.SplitName(e.Record.Key.Name)
		if _, living := k.living[namespace]; living && name == k.object {
			k.due[namespace] = e.Deleted
		}
	}
}

// see takes in a namespace.
func (k *NamespaceObject) see(rec *storage.Record) {
	if bytes.Contains(rec.Value, []byte(corev1.NamespaceTerminating)) && terminating(rec) {
		delete(k.living, rec.Key.Name)
		delete(k.due, rec.Key.Name)
		return
	}
	if _, known := k.living[rec.Key.Name]; !known {
		k.living[rec.Key.Name] = created(rec)
		k.due[rec.Key.Name] = false
	}
}

func terminating(rec *storage.Record) bool {
	var ns corev1.Namespace
	return json.Unmarshal(rec.Value, &ns) == nil && ns.Status.Phase == corev1.NamespaceTerminating
}

// created returns when an object was created; the zero time if there is none.
func created(rec *storage.Record) time.Time {
	var o metav1.PartialObjectMetadata
	if rec == nil || json.Unmarshal(rec.Value, &o) != nil {
		return time.Time{}
	}
	return o.CreationTimestamp.Time
}

// Sync implements [step.Controller].
func (k *NamespaceObject) Sync(view storage.View, now time.Time) []step.Request {
	k.next = time.Time{}
	var out []step.Request
	for _, namespace := range sortedKeys(k.due) {
		rec := view.Get(k.resource.Key(namespace, k.object))
		if settled := k.living[namespace].Add(Settling); rec == nil && !k.due[namespace] && now.Before(settled) {
			if k.next.IsZero() || settled.Before(k.next) {
				k.next = settled
			}
			continue
		}
		delete(k.due, namespace)
		if r, needed := k.mend(namespace, rec); needed {
			out = append(out, r)
		}
	}
	return out
}

// Wake implements [step.Waker].
func (k *NamespaceObject) Wake() time.Time { return k.next }

// mend returns the request that makes the object of a namespace as it should be.
func (k *NamespaceObject) mend(namespace string, rec *storage.Record) (r step.Request, needed bool) {
	if rec == nil {
		r, err := k.Request(namespace)
		return r, err == nil
	}
	content, err := k.content()
	if err != nil || content == "" {
		return r, false
	}
	var o metav1.PartialObjectMetadata
	if json.Unmarshal(rec.Value, &o) != nil {
		return r, false
	}
	// The server writes its objects without space, like ours.
	if bytes.Contains(rec.Value, []byte(content)) && (k.about == "" || o.Annotations[description] != "") {
		return r, false
	}
	if k.about != "" {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, description, k.about)
	}
	metadata, err := json.Marshal(o.ObjectMeta)
	body := `{"apiVersion":"` + k.resource.Version + `","kind":"` + k.resource.Kind + `","metadata":` + string(metadata) + "," + content + "}"
	return step.Put(k.user, k.resource.Object(rec.Key), []byte(body), k.subject(namespace)), err == nil
}

func (k *NamespaceObject) subject(namespace string) step.Subject {
	return step.Subject{Key: k.resource.Key(namespace, k.object)}
}

// Request returns the request that makes the object of a new namespace. It is sent
// before the creation of the namespace is answered, so that the controller finds nothing
// to do.
func (k *NamespaceObject) Request(namespace string) (step.Request, error) {
	content, err := k.content()
	if err != nil {
		return step.Request{}, err
	}
	if content != "" {
		content = "," + content
	}
	annotations, err := k.annotations()
	if err != nil {
		return step.Request{}, err
	}
	if annotations != "" {
		annotations = `,"annotations":` + annotations
	}
	return step.Request{
		User: k.user, Method: http.MethodPost, Path: k.resource.Collection(namespace), ContentType: step.JSON,
		Body: []byte(`{"apiVersion":"` + k.resource.Version + `","kind":"` + k.resource.Kind +
			`","metadata":{"name":"` + k.object + `","namespace":"` + namespace + `"` + annotations + `}` + content + "}"),
		Subject: k.subject(namespace),
	}, nil
}

// annotations of a new object, as JSON; "" for none.
func (k *NamespaceObject) annotations() (string, error) {
	if k.about == "" {
		return "", nil
	}
	text, err := json.Marshal(map[string]string{description: k.about})
	return string(text), err
}

// Creation returns what the request of [NamespaceObject.Request] would store.
func (k *NamespaceObject) Creation(namespace string, uid types.UID, at time.Time) (step.Creation, error) {
	content, contentErr := k.content()
	annotations, err := k.annotations()
	return step.Creation{
		Key: k.resource.Key(namespace, k.object), APIVersion: k.resource.Version, Kind: k.resource.Kind,
		Namespace: namespace, Name: k.object, UID: uid, At: at,
		Annotations: annotations, Manager: "kube-controller-manager", Fields: k.fields, Content: content,
	}, errors.Join(contentErr, err)
}

// Done implements [step.Controller].
func (k *NamespaceObject) Done(r step.Request, err error) {
	if err == nil {
		return
	}
	namespace, _ := step.SplitName(r.Subject.Key.Name)
	if _, living := k.living[namespace]; living {
		k.due[namespace] = true
	}
}
