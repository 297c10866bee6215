// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command machines is a custom API server whose objects run: a Machine is a process on the
// host of the server, with log, exec, attach to a terminal, forwarded ports and a graceful
// deletion, as Pods have them. With --data-dir its objects are in a SQLite database.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/machines/api/v1"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/sqlite"
)

//go:embed config/crd/bases/example.com_machines.yaml
var definition []byte

func main() {
	fmt.Println("Try: kubectl apply -f config/samples/web.yaml; kubectl get machines; with --standalone --pods and KUBECONFIG=machines.kubeconfig: kubectl logs -f web")
	extension.Main(server())
}

// server serves machines.
func server() extension.Server {
	h := newHost()
	var asPods bool
	return extension.Server{
		Name: "machines",
		Flags: func(set *flag.FlagSet) {
			set.BoolVar(&asPods, "pods", false, "also serve machines as Pods, so that kubectl logs, exec and port-forward with this server as --server work")
		},
		Kinds: func(context.Context) ([]extension.Kind, error) {
			kinds := []extension.Kind{custom.Kind[*v1.Machine]{
				Definition:   definition,
				Subresources: h.subresources(),
				Deletion:     resource.DeletionRules{Grace: grace, ReturnsObject: true},
			}}
			if asPods {
				kinds = append(kinds, pods{h})
			}
			return kinds, nil
		},
		Store: func(o extension.Options) (storage.Store, error) {
			if o.DataDir == "" {
				return storage.NewMemory(storage.MemoryOptions{}), nil
			}
			if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
				return nil, err
			}
			return sqlite.Open(filepath.Join(o.DataDir, "machines.db"), sqlite.Options{})
		},
		Background: func(ctx context.Context, loopback *rest.Config) error {
			defer h.stopAll()
			scheme, err := client.NewScheme(v1.AddToScheme)
			if err != nil {
				return err
			}
			m, err := manager.New(loopback, manager.Options{Name: "machines", Scheme: scheme})
			if err != nil {
				return err
			}
			err = controller.AddRequests(m, "machines", &runner{Client: m.Client(), host: h}, controller.Typed(
				controller.Watches[*v1.Machine](controller.Self[*v1.Machine]()),
				controller.From(controller.Channel(h.ended)),
			))
			if err != nil {
				return err
			}
			return m.Start(ctx)
		},
	}
}

// grace is the time that a machine has between SIGTERM and SIGKILL, in seconds; 0 if it
// does not run.
func grace(obj resource.Object, asked *int64) int64 {
	m, err := custom.As[*v1.Machine](obj)
	switch {
	case err != nil || m.Status.Phase == "" || m.Status.Phase == v1.Exited:
		return 0
	case asked != nil:
		return max(*asked, 0)
	}
	return *m.Spec.TerminationGracePeriodSeconds // it has a default
}
