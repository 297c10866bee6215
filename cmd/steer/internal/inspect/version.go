// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
)

const (
	// supportedMinors is how many minor versions of kube-apiserver, that one and older
	// ones, operators are for.
	supportedMinors = 4
	// serverTimeout bounds the question to a server.
	serverTimeout = 3 * time.Second
)

// versions is what steer version prints.
type versions struct {
	Steer string `json:"steer"`
	Go    string `json:"go"`
	// Kubernetes is the API that Steer serves, such as 1.37.
	Kubernetes string         `json:"kubernetes"`
	Server     *serverVersion `json:"server,omitempty"`
}

// serverVersion is the version of the API server of a kubeconfig.
type serverVersion struct {
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	// Supported: operators of this version of Steer are for such a server.
	Supported bool   `json:"supported"`
	Error     string `json:"error,omitempty"` // why the version is not known
}

// NewVersion returns the command version.
func NewVersion() *cobra.Command {
	var output, kubeconfig string
	var own bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Steer, of the Kubernetes API that it serves, and of the server",
		Long: `Prints the version of Steer, of the Kubernetes API that it serves, and of the API
server of the kubeconfig, if there is one, with whether operators are for it.`,
		Example: "  steer version\n  steer version --client -o json",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Steer: command.Version(), Go: runtime.Version(), Kubernetes: fmt.Sprint("1.", command.KubernetesMinor)}
			if !own {
				line := progress.Start(cmd.ErrOrStderr(), "asking the server")
				v.Server = askServer(cmd.Context(), kubeconfig)
				line.Stop()
			}
			return printAs(cmd.OutOrStdout(), output, v, v.text)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "format: json, or text, the default")
	f.BoolVar(&own, "client", false, "leave the server out")
	f.StringVar(&kubeconfig, "kubeconfig", "", "file that names the server (default: $KUBECONFIG, ~/.kube/config)")
	return cmd
}

// printAs prints a value as JSON, or as the text that a function makes of it.
func printAs(out io.Writer, format string, value any, text func() string) error {
	switch format {
	case "", "text":
		_, err := io.WriteString(out, text())
		return err
	case "json":
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", data)
		return err
	}
	return command.Usage(fmt.Sprintf("--output %q is no format: give json or text", format))
}

func (v versions) text() string {
	text := fmt.Sprintf("steer %s (Kubernetes API %s)\n", v.Steer, v.Kubernetes)
	if v.Server != nil {
		text += "server " + v.Server.text() + "\n"
	}
	return text
}

func (s *serverVersion) text() string {
	switch {
	case s.Error != "":
		return strings.TrimSpace(s.Address + " " + s.Error)
	case s.Supported:
		return fmt.Sprintf("%s is %s, which is supported", s.Address, s.Version)
	}
	return fmt.Sprintf("%s is %s, and 1.%d to 1.%d are supported", s.Address, s.Version, command.KubernetesMinor-supportedMinors+1, command.KubernetesMinor)
}

// askServer asks the API server of a kubeconfig for its version; nil without one.
func askServer(ctx context.Context, kubeconfig string) *serverVersion {
	config, err := cluster.Config(kubeconfig)
	if errors.Is(err, cluster.ErrNoKubeconfig) {
		return nil
	}
	if err != nil {
		return &serverVersion{Error: err.Error()}
	}
	s := &serverVersion{Address: config.Host}
	var minor int
	if s.Version, minor, err = cluster.Version(ctx, config); err != nil {
		s.Error = "cannot be asked: " + err.Error()
	}
	s.Supported = err == nil && minor <= command.KubernetesMinor && minor > command.KubernetesMinor-supportedMinors
	return s
}
