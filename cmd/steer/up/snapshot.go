// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage/durable"
	"github.com/steer-dev/steer/storage/local"
)

// NewSnapshot returns the command snapshot.
func NewSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save all data of a control plane to a file, or start one from such a file",
	}
	var dataDir, kubeconfig string
	save := &cobra.Command{
		Use:   "save FILE",
		Short: "Save all objects, with their revisions, to a file",
		Long: `Save all objects, with their revisions, to a file.

The data directory may be in use by a running steer up, which is then asked for
the snapshot and goes on undisturbed. The file has mode 0600: it holds Secrets.`,
		Example: "  steer snapshot save before-upgrade.snapshot",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saveSnapshot(cmd.Context(), args[0], dataDir, kubeconfig, cmd.OutOrStdout())
		},
	}
	save.Flags().StringVar(&kubeconfig, "kubeconfig", "", "take it from the control plane that this kubeconfig names")
	restore := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Fill a new data directory with the objects of a snapshot",
		Example: "  steer snapshot restore before-upgrade.snapshot --data-dir /tmp/again && steer up --data-dir /tmp/again",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restoreSnapshot(args[0], dataDir, cmd.OutOrStdout())
		},
	}
	for _, c := range []*cobra.Command{save, restore} {
		c.Flags().StringVar(&dataDir, "data-dir", "", "directory of the control plane (default as in steer up)")
	}
	save.MarkFlagsMutuallyExclusive("data-dir", "kubeconfig")
	cmd.AddCommand(save, restore)
	return cmd
}

// dataDirOr returns a directory, or the default one.
func dataDirOr(dir string) (string, error) {
	if dir == "" {
		return defaultDataDir()
	}
	return dir, nil
}

func saveSnapshot(ctx context.Context, file, dataDir, kubeconfig string, out io.Writer) error {
	if kubeconfig != "" {
		return writeSnapshot(file, out, func(w io.Writer) error { return fetchSnapshot(ctx, kubeconfig, w) })
	}
	dir, err := dataDirOr(dataDir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no data directory %s: name the one to save with --data-dir", dir)
	}
	return writeSnapshot(file, out, func(w io.Writer) error {
		err := controlplane.Save(ctx, dir, w)
		var inUse *local.InUseError
		if errors.As(err, &inUse) {
			return fetchSnapshot(ctx, filepath.Join(dir, "kubeconfig"), w)
		}
		return err
	})
}

// writeSnapshot gives the file its name only once it is complete.
func writeSnapshot(file string, out io.Writer, write func(io.Writer) error) error {
	var failed error
	err := durable.Replace(file, 0o600, func(w io.Writer) error {
		failed = write(w)
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("cannot write the snapshot: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "saved %d bytes to %s\n", info.Size(), file)
	return nil
}

// fetchSnapshot asks a running control plane.
func fetchSnapshot(ctx context.Context, kubeconfig string, w io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("the control plane is running, and its kubeconfig cannot be read: %w; name another one with --kubeconfig", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+controlplane.SnapshotPath, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot reach the control plane that %s names: %w", kubeconfig, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: is that a control plane of Steer, and may you do everything there?", config.Host, response.Status)
	}
	_, err = io.Copy(w, response.Body)
	return err
}

func restoreSnapshot(file, dataDir string, out io.Writer) error {
	dir, err := dataDirOr(dataDir)
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	defer in.Close()
	if err := controlplane.Restore(dir, in); err != nil {
		return err
	}
	fmt.Fprintf(out, "restored into %s; run: steer up --data-dir %s\n", dir, dir)
	return nil
}
