// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// reviewBytes is the size of the objects from which on they are sent in several reviews.
const reviewBytes = 2 << 20

// converter converts the objects of one definition with its webhook.
type converter struct {
	client  *webhookclient.Client
	metrics *conversionMetrics
	reviews *webhookclient.Decoder
	newUID  func() types.UID
	// crd is the name of the definition.
	crd   string
	group string
	// review is the version of the reviews, empty if the definition lists none that is known.
	review string
	target webhookclient.Target
}

// converterOf returns the converter of a definition that uses a webhook.
func (d *Definitions) converterOf(crd *v1.CustomResourceDefinition) *converter {
	webhook := crd.Spec.Conversion.Webhook
	c := &converter{client: d.options.Webhooks, metrics: d.metrics, reviews: d.reviews, newUID: d.options.NewUID, crd: crd.Name, group: crd.Spec.Group}
	c.review = webhookclient.ReviewVersion(webhook.ConversionReviewVersions)
	if at := webhook.ClientConfig; at != nil {
		c.target.CABundle = at.CABundle
		if at.URL != nil {
			c.target.URL = *at.URL
		}
		if s := at.Service; s != nil {
			c.target.Service = &webhookclient.Service{Namespace: s.Namespace, Name: s.Name}
			if s.Port != nil {
				c.target.Service.Port = *s.Port
			}
			if s.Path != nil {
				c.target.Path = *s.Path
			}
		}
	}
	return c
}

// convert implements [resource.Resource.Convert]. Objects that are in the version already are
// returned as they are; the others are sent together, in several reviews if they are large.
func (c *converter) convert(ctx context.Context, objects []resource.Object, version string) ([]resource.Object, error) {
	out := make([]resource.Object, len(objects))
	to := schema.GroupVersion{Group: c.group, Version: version}
	b := batch{to: to}
	for i, obj := range objects {
		d := obj.(*resource.Doc)
		switch {
		case d.GroupVersionKind().GroupVersion() == to:
			out[i] = d
			continue
		case d.Len() == 2 && d.GetKind() != "" && d.GetAPIVersion() != "": // a field manager compares with an object that has nothing
			bare := d.Copy()
			bare.SetGroupVersionKind(to.WithKind(d.GetKind()))
			out[i] = bare
			continue
		}
		text, err := d.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s %q: %w", d.GetKind(), d.GetName(), err)
		}
		if len(b.objects) > 0 && b.size+len(text) > reviewBytes {
			if err := c.send(ctx, &b, out); err != nil {
				return nil, err
			}
			b = batch{to: to}
		}
		b.add(i, d, text)
	}
	if len(b.objects) > 0 {
		if err := c.send(ctx, &b, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// batch are the objects of one review.
type batch struct {
	to      schema.GroupVersion
	objects []*resource.Doc
	texts   [][]byte
	at      []int // where they are in the result
	size    int
}

func (b *batch) add(at int, obj *resource.Doc, text []byte) {
	b.objects, b.texts, b.at, b.size = append(b.objects, obj), append(b.texts, text), append(b.at, at), b.size+len(text)
}

// send converts the objects of a batch, observes how long that takes, and puts them to where
// they belong.
func (c *converter) send(ctx context.Context, b *batch, out []resource.Object) error {
	began := time.Now()
	from := b.objects[0].GroupVersionKind()
	converted, failure, err := c.call(ctx, b, from)
	c.metrics.observe(c.crd, from.Version, b.to.Version, failure, err, time.Since(began))
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // the request has ended, not the webhook failed
	case err != nil:
		return err
	}
	for i, obj := range converted {
		out[b.at[i]] = obj
	}
	return nil
}

// call sends one review and returns the objects of the answer, or how it failed.
func (c *converter) call(ctx context.Context, b *batch, from schema.GroupVersionKind) ([]*resource.Doc, conversionFailure, error) {
	if c.review == "" {
		return nil, callFailure, errors.New("no supported conversion review versions")
	}
	uid := c.newUID()
	answer, err := c.client.Post(ctx, c.target, c.reviewOf(b, uid))
	if err != nil {
		return nil, callFailure, fmt.Errorf("conversion webhook for %v failed: %v", from, err) //nolint:errorlint // a deadline of the webhook is not one of the request
	}
	objects, failure, err := c.objectsOf(answer, uid)
	if err != nil {
		return nil, failure, fmt.Errorf("conversion webhook for %v failed: %v", from, err) //nolint:errorlint // a Status of the webhook is not the answer to the request
	}
	if len(objects) != len(b.objects) {
		return nil, partialResponse, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(objects), len(b.objects))
	}
	out := make([]*resource.Doc, len(objects))
	for i, converted := range objects {
		if out[i], err = convertedObject(b.objects[i], b.to, converted.Raw); err != nil {
			return nil, invalidObject, err
		}
	}
	return out, "", nil
}

// reviewOf returns the review of a batch, as kube-apiserver writes it.
func (c *converter) reviewOf(b *batch, uid types.UID) []byte {
	out := make([]byte, 0, b.size+len(b.texts)+512)
	out = append(out, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/`...)
	out = append(out, c.review...)
	out = append(out, `","request":{"uid":"`...)
	out = append(out, uid...)
	out = append(out, `","desiredAPIVersion":"`...)
	out = append(out, b.to.String()...)
	out = append(out, `","objects":[`...)
	for i, text := range b.texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, text...)
	}
	return append(out, `]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`+"\n"...)
}

// newConversionReviews returns what decodes the answers of conversion webhooks.
func newConversionReviews() *webhookclient.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(v1.SchemeGroupVersion, &v1.ConversionReview{})
	scheme.AddKnownTypes(v1beta1.SchemeGroupVersion, &v1beta1.ConversionReview{})
	metav1.AddToGroupVersion(scheme, v1.SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, v1beta1.SchemeGroupVersion)
	return webhookclient.NewDecoder(scheme, v1.SchemeGroupVersion, v1beta1.SchemeGroupVersion)
}

// objectsOf returns the objects of an answer to the review with a uid, or how it failed.
func (c *converter) objectsOf(answer []byte, uid types.UID) ([]runtime.RawExtension, conversionFailure, error) {
	var response *v1.ConversionResponse
	switch c.review {
	case "v1beta1": // has neither type nor uid in its answers
		var review v1beta1.ConversionReview
		if err := c.reviews.Decode(answer, &review); err != nil {
			return nil, callFailure, err
		}
		if r := review.Response; r != nil {
			response = &v1.ConversionResponse{UID: uid, ConvertedObjects: r.ConvertedObjects, Result: r.Result}
		}
	default:
		var review v1.ConversionReview
		if err := c.reviews.Decode(answer, &review); err != nil {
			return nil, callFailure, err
		}
		if want, got := v1.SchemeGroupVersion.WithKind("ConversionReview"), review.GroupVersionKind(); got != want {
			return nil, malformedResponse, fmt.Errorf("expected webhook response of %v, got %v", want, got)
		}
		response = review.Response
	}
	switch {
	case response == nil:
		return nil, malformedResponse, errors.New("no response provided")
	case response.UID != uid:
		return nil, malformedResponse, fmt.Errorf("expected response.uid=%q, got %q", uid, response.UID)
	case response.Result.Status == metav1.StatusSuccess:
		return response.ConvertedObjects, "", nil
	case response.Result.Message != "":
		return nil, malformedResponse, errors.New(response.Result.Message)
	}
	return nil, malformedResponse, fmt.Errorf("response.result.status was '%s', not 'Success'", response.Result.Status)
}

// convertedObject returns an object of an answer, with the metadata of the object that was
// sent but for labels and annotations.
func convertedObject(sent *resource.Doc, to schema.GroupVersion, text []byte) (*resource.Doc, error) {
	from := sent.GroupVersionKind()
	if len(text) == 0 {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object: it is null", from)
	}
	out, err := resource.ParseDoc(text)
	if err != nil {
		return nil, err
	}
	if got := out.GroupVersionKind().GroupVersion(); got != to {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", from, to, got)
	}
	if got := out.GetKind(); got != from.Kind {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid kind (expected %v, received %v)", from, from.Kind, got)
	}
	if err := keepsIdentity(sent, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object: %w", from, err)
	}
	if err := keepMetadata(sent, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", from, err)
	}
	return out, nil
}
