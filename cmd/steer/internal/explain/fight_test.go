// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// TestAFightOfTwoOperatorsIsSeen, as in the incident of page 20 of the guide: why names both
// sides, and the page leads from the attempts of one to those of the other.
func TestAFightOfTwoOperatorsIsSeen(t *testing.T) {
	t.Parallel()
	fight(t, steertest.New(t, steertest.Options{Scheme: mapsScheme(t)}).Config)
}

// TestWhyOnKubeAPIServerNamesBothSidesOfAFight is the same incident there.
func TestWhyOnKubeAPIServerNamesBothSidesOfAFight(t *testing.T) {
	t.Parallel()
	fight(t, kubeapiserver.Server(t))
}

// painter is an operator that keeps the wall in a colour, and says when it has painted often.
func painter(name, colour string, often func()) steer.Operator {
	var painted atomic.Int32
	return steer.Operator{
		Name: name, Scheme: steer.Scheme{corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			paint := func(ctx context.Context, c *corev1.ConfigMap) (controller.Result, error) {
				if c.Data["value"] == colour {
					return controller.Done(), nil
				}
				if painted.Add(1) == 20 {
					often()
				}
				return controller.Done(), m.Client().Apply(ctx, mapOf("wall", "a", colour), client.FieldOwner(name), client.ForceOwnership)
			}
			return controller.Add(m, controller.Func[*corev1.ConfigMap](paint), controller.Name(name),
				controller.Where(func(e controller.Event[*corev1.ConfigMap]) bool { return e.Object.Labels["role"] == "wall" }))
		},
	}
}

func fight(t *testing.T, config *rest.Config) {
	t.Helper()
	admin, err := client.New(config, client.Options{Scheme: mapsScheme(t), FieldOwner: "a-user"})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Apply(t.Context(), mapOf("wall", "a", "white"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, op := range []steer.Operator{painter("painter", "red", stop), painter("office", "grey", stop)} {
		op.Config = rest.CopyConfig(config)
		op.Config.QPS = -1
		go func() {
			ended <- steer.Run(ctx, []string{"--health-probe-bind-address=0", "--zap-log-level=panic", "--record-dir=" + dirs[i]}, op)
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}

	rec, err := openRecords(t.Context(), dirs, nil, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	s, err := versions.Connect(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	wall := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "wall-a"}
	answer, err := newFacts(t.Context(), s, rec, "none").Why(t.Context(), wall, "data.value")
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{" of painter, ", " of office, "} {
		if !strings.Contains(answer.String(), side) {
			t.Errorf("why does not name the reconciles%s:\n%s", side, answer)
		}
	}
	page, err := (&options{}).page(t.Context(), dirs)
	if err != nil {
		t.Fatal(err)
	}
	object := says(t, page, "/object?kind=ConfigMap&namespace=default&name=wall-a")
	for _, side := range []string{"written by </span>", "painter", "office"} {
		if !strings.Contains(object, side) {
			t.Errorf("the page does not lead from the attempts of one to those of the other, by %q:\n%s", side, object)
		}
	}
}
