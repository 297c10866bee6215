// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
)

// remoteFlags are the flags of steer dev for a cluster of the kubeconfig.
type remoteFlags struct {
	context, kubeconfig string
	yes, takeover       bool
}

func (f *remoteFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.context, "context", "", "in a project: run against the cluster of this context of the kubeconfig")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --context: `file` that has the context (default: $KUBECONFIG, ~/.kube/config)")
	flags.BoolVar(&f.yes, "yes", false, "with --context: install what the operator needs without asking")
	flags.BoolVar(&f.takeover, "takeover", false, "with --context: take the leader lease also from an operator that runs")
}

// check refuses flags that do not go together.
func (f *remoteFlags) check(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("context") {
		switch {
		case f.context == "":
			return command.Usage("dev: --context has to name a context of the kubeconfig: kubectl config get-contexts lists them")
		case len(args) > 0:
			return command.Usage("dev: --context is for the operator of a project: run the command without steer dev, with the kubeconfig of that cluster")
		}
		return nil
	}
	for _, name := range []string{"kubeconfig", "yes", "takeover"} {
		if cmd.Flags().Changed(name) {
			return command.Usage(fmt.Sprintf("dev: --%s is for a cluster that --context names", name))
		}
	}
	return nil
}

// remote is the cluster that the flags name; nil without one.
func (f *remoteFlags) remote(cmd *cobra.Command) (*dev.Remote, error) {
	if f.context == "" {
		return nil, nil
	}
	at, err := cluster.Find(f.kubeconfig, f.context)
	if errors.Is(err, cluster.ErrNoContext) {
		return nil, command.Usage("dev: " + err.Error())
	}
	if err != nil {
		return nil, err
	}
	r := &dev.Remote{Context: at, Takeover: f.takeover}
	switch t := terminal(); {
	case f.yes:
	case t == nil:
		r.Confirm = func(context.Context, string) error {
			return command.Usage(fmt.Sprintf("dev: %v; there is no terminal to ask at: run again with --yes to apply this", dev.ErrUnconfirmed))
		}
	default:
		r.Confirm = func(ctx context.Context, question string) error { return ask(ctx, t.In, cmd.ErrOrStderr(), question) }
	}
	return r, nil
}

// ask asks a question whose answer is yes or no, the default.
func ask(ctx context.Context, in io.Reader, out io.Writer, question string) error {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended
		line, _ := bufio.NewReader(in).ReadString('\n') // no line is no answer
		answered <- line
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line := <-answered:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
	}
	return fmt.Errorf("dev: %w", dev.ErrUnconfirmed)
}
