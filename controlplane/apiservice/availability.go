// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/storage"
)

// serviceBucket is that of what leads, with the buckets of endpoints, to another server.
const serviceBucket = "services"

// reachable is the condition of a service that another server serves, by what is stored of
// that: what prevents connections to it. ok reports that nothing does, so that the server has to
// be asked.
func reachable(view storage.View, s service) (c v1.APIServiceCondition, ok bool) {
	refuse := func(reason, format string, args ...any) (v1.APIServiceCondition, bool) {
		return unavailable(reason, fmt.Sprintf(format, args...)), false
	}
	to := s.Spec.Service
	rec := view.Get(storage.Key{Bucket: serviceBucket, Name: to.Namespace + "/" + to.Name})
	if rec == nil {
		return refuse("ServiceNotFound", "service/%s in %q is not present", to.Name, to.Namespace)
	}
	var found corev1.Service
	if json.Unmarshal(rec.Value, &found) == nil && found.Spec.Type == corev1.ServiceTypeClusterIP {
		port, listens := portName(&found, kind.Value(to.Port))
		if !listens {
			return refuse("ServicePortError", "service/%s in %q is not listening on port %d", to.Name, to.Namespace, kind.Value(to.Port))
		}
		switch ready, known, err := egress.Endpoints(view, &found, port); {
		case err != nil:
			return refuse("EndpointsAccessError", "endpointslices for service/%s in %q cannot be accessed due to: %v", to.Name, to.Namespace, err)
		case !known:
			return refuse("EndpointsNotFound", "cannot find endpointslices for service/%s in %q", to.Name, to.Namespace)
		case len(ready) == 0:
			return refuse("MissingEndpoints", "endpointslices for service/%s in %q have no addresses with port name %q", to.Name, to.Namespace, port)
		}
	}
	return v1.APIServiceCondition{}, true
}

func unavailable(reason, message string) v1.APIServiceCondition {
	return v1.APIServiceCondition{Type: v1.Available, Status: v1.ConditionFalse, Reason: reason, Message: message}
}

// answered is the condition of a service whose server was asked.
func answered(err error) v1.APIServiceCondition {
	if err != nil {
		return unavailable("FailedDiscoveryCheck", err.Error())
	}
	return v1.APIServiceCondition{Type: v1.Available, Status: v1.ConditionTrue, Reason: "Passed", Message: "all checks passed"}
}

// portName returns the name of a port of a service, and whether it has it.
func portName(s *corev1.Service, port int32) (string, bool) {
	for _, p := range s.Spec.Ports {
		if p.Port == port {
			return p.Name, true
		}
	}
	return "", false
}
