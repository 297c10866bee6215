// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// reviewBytes is the size of the objects from which on they are sent in several reviews.
const reviewBytes = 2 << 20

// converter converts the objects of one definition with its webhook.
type converter struct {
	client  *webhookclient.Client
	metrics *conversionMetrics
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
	c := &converter{client: d.options.Webhooks, metrics: d.metrics, newUID: d.options.NewUID, crd: crd.Name, group: crd.Spec.Group}
	for _, version := range webhook.ConversionReviewVersions {
		if version == "v1" || version == "v1beta1" {
			c.review = version
			break
		}
	}
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
		u := obj.(*unstructured.Unstructured)
		switch {
		case u.GroupVersionKind().GroupVersion() == to:
			out[i] = u
			continue
		case len(u.Object) == 2 && u.GetKind() != "" && u.GetAPIVersion() != "": // a field manager compares with an object that has nothing
			out[i] = &unstructured.Unstructured{Object: map[string]any{"apiVersion": to.String(), "kind": u.GetKind()}}
			continue
		}
		text, err := resource.EncodeObject(u)
		if err != nil {
			return nil, fmt.Errorf("encode %s %q: %w", u.GetKind(), u.GetName(), err)
		}
		if len(b.objects) > 0 && b.size+len(text) > reviewBytes {
			if err := c.send(ctx, &b, out); err != nil {
				return nil, err
			}
			b = batch{to: to}
		}
		b.add(i, u, text)
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
	objects []*unstructured.Unstructured
	texts   [][]byte
	at      []int // where they are in the result
	size    int
}

func (b *batch) add(at int, obj *unstructured.Unstructured, text []byte) {
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
func (c *converter) call(ctx context.Context, b *batch, from schema.GroupVersionKind) ([]*unstructured.Unstructured, conversionFailure, error) {
	if c.review == "" {
		return nil, callFailure, errors.New("no supported conversion review versions")
	}
	uid := c.newUID()
	answer, err := c.client.Post(ctx, c.target, c.reviewOf(b, uid))
	var review conversionReview
	if err == nil {
		err = review.decode(answer)
	}
	if err != nil {
		return nil, callFailure, fmt.Errorf("conversion webhook for %v failed: %v", from, err) //nolint:errorlint // a deadline of the webhook is not one of the request
	}
	objects, err := review.objects(c.review, uid)
	if err != nil {
		return nil, malformedResponse, fmt.Errorf("conversion webhook for %v failed: %w", from, err)
	}
	if len(objects) != len(b.objects) {
		return nil, partialResponse, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(objects), len(b.objects))
	}
	out := make([]*unstructured.Unstructured, len(objects))
	for i, text := range objects {
		if out[i], err = convertedObject(b.objects[i], b.to, text); err != nil {
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

// conversionReview is the part of a ConversionReview that an answer has.
type conversionReview struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Response   *struct {
		UID              types.UID         `json:"uid"`
		ConvertedObjects []json.RawMessage `json:"convertedObjects"`
		Result           struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"result"`
	} `json:"response"`
}

// decode reads an answer, which has to be some version of a ConversionReview.
func (r *conversionReview) decode(answer []byte) error {
	var kind struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(answer, &kind); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	return json.Unmarshal(answer, r)
}

// objects returns the objects of an answer to the review with a uid.
func (r *conversionReview) objects(version string, uid types.UID) ([]json.RawMessage, error) {
	// The first version of reviews had no uid in its answers.
	if version != "v1beta1" {
		want := v1.SchemeGroupVersion.WithKind("ConversionReview")
		if got := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind); got != want {
			return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
		}
	}
	switch {
	case r.Response == nil:
		return nil, errors.New("no response provided")
	case version != "v1beta1" && r.Response.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.Response.UID)
	case r.Response.Result.Status == "Success":
		return r.Response.ConvertedObjects, nil
	case r.Response.Result.Message != "":
		return nil, errors.New(r.Response.Result.Message)
	}
	return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", r.Response.Result.Status)
}

// convertedObject returns an object of an answer, with the metadata of the object that was
// sent but for labels and annotations.
func convertedObject(sent *unstructured.Unstructured, to schema.GroupVersion, text []byte) (*unstructured.Unstructured, error) {
	from := sent.GroupVersionKind()
	content, err := resource.DecodeContent(bytes.TrimSpace(text))
	switch {
	case err != nil:
		return nil, err
	case content == nil:
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object: it is null", from)
	}
	out := &unstructured.Unstructured{Object: content}
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

// one is convert for a field manager, which has no context: the deadline of the webhook bounds
// it.
func (c *converter) one(obj apply.Object, to schema.GroupVersion) (apply.Object, error) {
	out, err := c.convert(context.Background(), []resource.Object{obj.(resource.Object)}, to.Version)
	if err != nil {
		return nil, err
	}
	resource.DecodeObject(out[0])
	return out[0], nil
}
