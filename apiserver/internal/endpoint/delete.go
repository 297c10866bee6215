// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/internal/jsontext"
)

// deleteOptions reads the options of a deletion, from the body or the query.
func (h *Handler) deleteOptions(req *Request) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	data, err := h.readBody(req)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		if err := decodeQuery(req, o); err != nil {
			return nil, err
		}
	} else if err := body.DeleteOptions(req.HTTP.Header.Get("Content-Type"), data, o); err != nil {
		return nil, err
	} else {
		h.event(req).RequestOptions(o)
	}
	o.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	if err := invalidOptions("DeleteOptions", metavalidation.ValidateDeleteOptions(o)); err != nil {
		return nil, err
	}
	o.TypeMeta = registry.OptionsKind("DeleteOptions")
	return o, nil
}

// delete answers a DELETE of one object.
func (h *Handler) delete(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, err := h.deleteOptions(req)
	if err != nil {
		return err
	}
	warnOfPropagation(req, options)
	op := h.newOperation(req, registry.WriteOptions{DryRun: options.DryRun})
	rec, gone, err := op.Delete(ctx, req.Name, options)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if !gone && options.OrphanDependents != nil && !*options.OrphanDependents {
		code = http.StatusAccepted
	}
	if gone && !req.Served.Deletion.ReturnsObject {
		h.sendStatus(w, req, code, deletionStatus(req.Served, rec.Value))
		return nil
	}
	return h.answerRecord(ctx, w, req, choice, code, req.Served, req.Version, rec)
}

// warnOfPropagation warns clients that rely on a default propagation policy that
// differs from what they may expect.
func warnOfPropagation(req *Request, o *metav1.DeleteOptions) {
	if advice := req.Served.Deletion.PropagationWarning; advice != "" && o.PropagationPolicy == nil && o.OrphanDependents == nil {
		req.Warn(advice)
	}
}

// deletionStatus is the Status that answers a finished deletion.
func deletionStatus(in *registry.Served, value []byte) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name:  jsontext.String(value, "metadata", "name"),
		Group: in.Group,
		Kind:  in.Plural, // kube-apiserver puts the resource here, not the kind
		UID:   types.UID(jsontext.String(value, "metadata", "uid")),
	}}
}

// deleteCollection answers a DELETE of all selected objects.
func (h *Handler) deleteCollection(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	list, sel, err := h.listOptions(req)
	if err != nil {
		return err
	}
	options, err := h.deleteOptions(req)
	if err != nil {
		return err
	}
	warnOfPropagation(req, options)
	p, err := h.registry.List(ctx, sel, list)
	if err != nil {
		return err
	}
	for _, rec := range p.Records {
		if err := ctx.Err(); err != nil {
			return err
		}
		one := *req
		m := recordcache.Meta(rec)
		if one.Served.Namespaced {
			one.Namespace = m.Namespace
		}
		op := h.newOperation(&one, registry.WriteOptions{DryRun: options.DryRun})
		if _, _, err := op.Delete(ctx, m.Name, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return h.answerList(ctx, w, req, choice, p)
}
