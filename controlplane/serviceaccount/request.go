// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/storage"
)

// accounts is the bucket, and the plural name, of ServiceAccounts.
const accounts = "serviceaccounts"

// Lives of tokens.
const (
	usualLife = time.Hour
	minLife   = 10 * time.Minute
	// podLife is what the volumes of Pods ask for. It is odd so that it can be
	// told from an audience that the client chose: such a token may be used for yearLong,
	// for clients that read it only once.
	podLife  = time.Hour + 7*time.Second
	yearLong = 365 * 24 * time.Hour
)

// requestKind is what is posted to the subresource; planes share it.
var requestKind = sync.OnceValue(func() resource.Subresource {
	k := kind.Definition[authenticationv1.TokenRequest, *authenticationv1.TokenRequest]{
		Group: authenticationv1.GroupName, Version: "v1",
		Defaults: func(r *authenticationv1.TokenRequest) {
			if r.Spec.ExpirationSeconds == nil {
				seconds := int64(usualLife / time.Second)
				r.Spec.ExpirationSeconds = &seconds
			}
		},
	}
	return resource.Subresource{
		Name: "token", Kind: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
		New:      func() resource.Object { return new(authenticationv1.TokenRequest) },
		Strategy: k.Strategy(), FieldManager: k.FieldManager("token"),
	}
})

// requests answers the subresource token.
type requests struct{ t *Tokens }

var _ resource.Creater = requests{}

// Create implements [resource.Creater].
func (q requests) Create(ctx context.Context, r *resource.Request, obj resource.Object, _ *metav1.CreateOptions) (resource.Object, error) {
	req := obj.(*authenticationv1.TokenRequest)
	if err := matchesPath(r, req); err != nil {
		return nil, err
	}
	view := q.t.o.Store.Latest()
	var account corev1.ServiceAccount
	if err := read(view, schema.GroupResource{Resource: accounts}, r.Namespace, r.Name, &account); err != nil {
		return nil, err
	}
	if req.UID != "" && req.UID != account.UID {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: authenticationv1.GroupName, Resource: "TokenRequest"}, r.Name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", req.UID, account.UID))
	}
	spec := &req.Spec
	if len(spec.Audiences) == 0 {
		spec.Audiences = slices.Clone(q.t.o.Audiences)
	}
	now := time.Now()
	req.Name, req.Namespace, req.UID, req.CreationTimestamp = r.Name, r.Namespace, account.UID, metav1.NewTime(now)
	req.Status = authenticationv1.TokenRequestStatus{}
	if errs := validate(spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), "", errs)
	}
	b := &binding{Namespace: r.Namespace, Account: reference{Name: account.Name, UID: account.UID}}
	if spec.BoundObjectRef != nil {
		if err := bind(view, b, spec.BoundObjectRef); err != nil {
			return nil, err
		}
	}
	if limit := int64(q.t.o.MaxLife / time.Second); limit > 0 && *spec.ExpirationSeconds > limit {
		r.Warn(fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", *spec.ExpirationSeconds, limit))
		spec.ExpirationSeconds = &limit
	}
	seconds := *spec.ExpirationSeconds
	req.Status.ExpirationTimestamp = metav1.NewTime(now.Add(time.Duration(seconds) * time.Second))
	if !q.t.o.ExactLife && b.Pod != nil && seconds == int64(podLife/time.Second) && contains(q.t.o.Audiences, spec.Audiences) {
		b.WarnAfter, seconds = date(now.Unix()+seconds), int64(yearLong/time.Second)
	}
	from, to := date(now.Unix()), date(now.Unix()+seconds)
	token, err := q.t.sign(&claims{
		Audience: spec.Audiences, Issuer: q.t.o.Issuers[0], Subject: UserPrefix + r.Namespace + ":" + account.Name,
		IssuedAt: &from, NotBefore: &from, Expires: &to, ID: string(q.t.o.NewID()), Bound: b,
	})
	req.Status.Token = token
	return req, err
}

// matchesPath refuses a request whose body names another account than its path.
func matchesPath(r *resource.Request, req *authenticationv1.TokenRequest) error {
	gk := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind()
	if req.Name != "" && req.Name != r.Name {
		return apierrors.NewInvalid(gk, r.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), req.Name, "must match the service account name if specified"),
		})
	}
	if req.Namespace != "" && req.Namespace != r.Namespace {
		return apierrors.NewInvalid(gk, r.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "namespace"), req.Namespace, "must match the service account namespace if specified"),
		})
	}
	return nil
}

func validate(spec *authenticationv1.TokenRequestSpec) field.ErrorList {
	path := field.NewPath("spec", "expirationSeconds")
	switch seconds := *spec.ExpirationSeconds; {
	case seconds < int64(minLife/time.Second):
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration less than 10 minutes")}
	case seconds > math.MaxUint32+1:
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// contains reports whether all of some names are among others.
func contains(all, some []string) bool {
	for _, s := range some {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// read reads a stored object, or says that it is not found.
func read(view storage.View, gr schema.GroupResource, namespace, name string, into any) error {
	key := storage.Key{Bucket: gr.Resource, Name: name}
	if namespace != "" {
		key.Name = namespace + "/" + name
	}
	rec := view.Get(key)
	if rec == nil {
		return apierrors.NewNotFound(gr, name)
	}
	if err := json.Unmarshal(rec.Value, into); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read %s: %w", key, err))
	}
	return nil
}

// bind makes a token depend on an object as well.
func bind(view storage.View, b *binding, ref *authenticationv1.BoundObjectReference) error {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	var uid types.UID
	switch {
	case gvk.Group == "" && gvk.Kind == "Pod":
		var pod corev1.Pod
		if err := read(view, schema.GroupResource{Resource: "pods"}, b.Namespace, ref.Name, &pod); err != nil {
			return err
		}
		if pod.Spec.ServiceAccountName != b.Account.Name {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", b.Account.Name))
		}
		uid, b.Pod = pod.UID, &reference{Name: pod.Name, UID: pod.UID}
		if name := pod.Spec.NodeName; name != "" {
			b.Node = &reference{Name: name}
			var node corev1.Node
			if read(view, schema.GroupResource{Resource: "nodes"}, "", name, &node) == nil {
				b.Node.UID = node.UID
			}
		}
	case gvk.Group == "" && gvk.Kind == "Secret":
		var secret corev1.Secret
		if err := read(view, schema.GroupResource{Resource: "secrets"}, b.Namespace, ref.Name, &secret); err != nil {
			return err
		}
		uid, b.Secret = secret.UID, &reference{Name: secret.Name, UID: secret.UID}
	case gvk.Group == "" && gvk.Kind == "Node":
		var node corev1.Node
		if err := read(view, schema.GroupResource{Resource: "nodes"}, "", ref.Name, &node); err != nil {
			return err
		}
		uid, b.Node = node.UID, &reference{Name: node.Name, UID: node.UID}
	case gvk.GroupVersion() == admissionregistrationv1.SchemeGroupVersion && (gvk.Kind == "ValidatingWebhookConfiguration" || gvk.Kind == "MutatingWebhookConfiguration"):
		return apierrors.NewBadRequest("cannot bind token to object of type " + gvk.String() + " (feature gate APIServerWebhookAuthenticationToken is disabled)")
	default:
		return apierrors.NewBadRequest("cannot bind token to object of type " + gvk.String())
	}
	if ref.UID != "" && ref.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, ref.Name,
			errors.New("the UID in the bound object reference ("+string(ref.UID)+") does not match the UID in record. The object might have been deleted and then recreated"))
	}
	return nil
}
