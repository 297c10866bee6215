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
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/durable"
	"github.com/steer-dev/steer/storage/local"
)

// NewSnapshot returns the command snapshot. Data in etcd is copied by data; nil: the program
// steer-etcd runs in place of this one where etcd is named.
func NewSnapshot(data *EtcdData) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save all data of a control plane to a file, or start one from such a file",
	}
	cmd.AddCommand(newSave(data), newRestore(data), newImport(data))
	return cmd
}

func newSave(data *EtcdData) *cobra.Command {
	var dataDir, kubeconfig string
	var from Etcd
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save all objects, with their revisions, to a file",
		Long: `Save all objects, with their revisions, to a file.

The data directory may be in use by a running steer up, which is then asked for
the snapshot and goes on undisturbed. With --etcd-servers the data is that of the
servers on that etcd, which may run as well. The file has mode 0600: it holds
Secrets.`,
		Example: `  steer snapshot save before-upgrade.snapshot
  steer snapshot save all.snapshot --etcd-servers https://10.0.0.1:2379`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := from.validate(false); err != nil {
				return err
			}
			if len(from.Servers) == 0 {
				return saveSnapshot(cmd.Context(), args[0], dataDir, kubeconfig, cmd.OutOrStdout())
			}
			if data == nil {
				return runSibling(cmd.Context(), os.Args[1:], 0)
			}
			return writeSnapshot(args[0], cmd.OutOrStdout(), func(w io.Writer) error { return data.Save(cmd.Context(), from, w) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "take it from the control plane that this kubeconfig names")
	f.StringVar(&dataDir, "data-dir", "", "directory of the control plane (default as in steer up)")
	from.addFlags(f)
	f.Lookup("etcd-servers").Usage = "save what servers keep in etcd at these URLs; it needs the program steer-etcd"
	cmd.MarkFlagsMutuallyExclusive("data-dir", "kubeconfig", "etcd-servers")
	return cmd
}

func newRestore(data *EtcdData) *cobra.Command {
	var dataDir string
	var to Etcd
	var replace bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill a new data directory, or etcd, with the objects of a snapshot",
		Long: `Fill a new data directory, or etcd, with the objects of a snapshot.

Revisions go on from that of the snapshot: watches of clients continue, or end
with 410 Gone, after which clients list again. In etcd the objects get new
resourceVersions.

Servers on that etcd are stopped before. If the command is ended early no server
starts on the data until it has been run again.`,
		Example: `  steer snapshot restore before-upgrade.snapshot --data-dir /tmp/again && steer up --data-dir /tmp/again
  steer snapshot restore all.snapshot --etcd-servers https://10.0.0.1:2379`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := to.validate(false); err != nil {
				return err
			}
			switch {
			case len(to.Servers) == 0 && replace:
				return errors.New("--replace is for --etcd-servers: restore into a data directory that holds nothing")
			case len(to.Servers) == 0:
				return restoreSnapshot(args[0], dataDir, cmd.OutOrStdout())
			case data == nil:
				return runSibling(cmd.Context(), os.Args[1:], 0)
			}
			return restoreToEtcd(cmd.Context(), data, args[0], to, replace, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&dataDir, "data-dir", "", "directory of the control plane (default as in steer up)")
	f.BoolVar(&replace, "replace", false, "remove the data that servers have in etcd")
	to.addFlags(f)
	f.Lookup("etcd-servers").Usage = "restore into etcd at these URLs; it needs the program steer-etcd"
	cmd.MarkFlagsMutuallyExclusive("data-dir", "etcd-servers")
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

// restoreToEtcd fills a prefix of etcd.
func restoreToEtcd(ctx context.Context, data *EtcdData, file string, to Etcd, replace bool, out io.Writer) error {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	defer in.Close()
	view, err := storage.Load(in)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot %s: %w", file, err)
	}
	if err := data.Restore(ctx, to, view, replace); err != nil {
		return err
	}
	records := 0
	for bucket := range view.Buckets() {
		records += view.Count(bucket, "", "")
	}
	servers := strings.Join(to.Servers, ",")
	fmt.Fprintf(out, "restored %d records into etcd at %s; run: steer up --etcd-servers %s\n", records, servers, servers)
	return nil
}
