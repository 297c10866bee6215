// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// controllersVariable names the environment variable that says which controllers run
// beside the stand-in for kube-apiserver. The real program runs none of them: they are
// those of kube-controller-manager.
const controllersVariable = "STEER_CONTROLLERS"

// Names in the list beside those of controllers.
const (
	allControllers = "all"
	// simulatedWorkloads are a node and the controllers of Deployments, Jobs and their
	// like.
	simulatedWorkloads = "workloads"
)

// accountControllers give namespaces what Pods need. A suite that does without the
// plugin ServiceAccount, as envtest always does, counts on namespaces without it.
func accountControllers() []string {
	return []string{"serviceaccount-controller", "root-ca-certificate-publisher-controller"}
}

// selectControllers leaves out of a plane all controllers but those of a list like that
// of kube-controller-manager's --controllers: names, "all", and names after "-" for what
// all does without. An empty list is none.
func selectControllers(list string, o *controlplane.Options) error {
	known := append(controlplane.Controllers(), simulatedWorkloads)
	var unasked []string // by "all"
	if slices.Contains(o.Disable, "ServiceAccount") {
		unasked = accountControllers()
	}
	wanted := map[string]bool{}
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		name, unwanted := strings.CutPrefix(item, "-")
		switch {
		case item == "":
		case item == allControllers:
			for _, name := range known {
				if _, decided := wanted[name]; !decided {
					wanted[name] = !slices.Contains(unasked, name)
				}
			}
		case !slices.Contains(known, name):
			return fmt.Errorf("%s: there is no controller %q: give %s, or any of %s", controllersVariable, name, allControllers, strings.Join(known, ", "))
		default:
			wanted[name] = !unwanted
		}
	}
	for _, name := range controlplane.Controllers() {
		if !wanted[name] {
			o.Disable = append(o.Disable, name)
		}
	}
	if wanted[simulatedWorkloads] {
		o.Workloads = &workloads.Options{}
	}
	return nil
}
