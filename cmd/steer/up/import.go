// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/controlplane/migrate"
)

// kubernetesPrefix is where a kube-apiserver has its keys unless --etcd-prefix says otherwise.
const kubernetesPrefix = "/registry"

func newImport(data *EtcdData) *cobra.Command {
	var from Etcd
	var backup string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a snapshot of the data that a kube-apiserver has in etcd",
		Long: `Make a snapshot of the data that a kube-apiserver has in etcd.

The data is read, not changed: from an etcd, or from a file that etcdctl snapshot
save wrote. Values are JSON or protobuf; encrypted ones cannot be read. Objects
keep their uids, resourceVersions, managed fields and status. Every key that is
not taken is listed with the reason.

Keys and certificates are not in etcd. For tokens and certificates of the cluster
to stay valid, copy them into the folder pki of the data directory.`,
		Example: `  steer snapshot import cluster.snapshot --etcd-servers https://10.0.0.1:2379 \
      --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key
  steer snapshot import cluster.snapshot --backup etcd.db
  steer snapshot restore cluster.snapshot --data-dir cluster && steer up --data-dir cluster`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(from.Servers) == 0) == (backup == "") {
				return errors.New("name the etcd with --etcd-servers, or a file of etcdctl snapshot save with --backup")
			}
			if data == nil {
				return runSibling(cmd.Context(), os.Args[1:], 0)
			}
			return importData(cmd.Context(), data, from, backup, args[0], cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&backup, "backup", "", "read this file, which etcdctl snapshot save wrote")
	from.addFlags(f)
	f.Lookup("etcd-servers").Usage = "read the etcd at these URLs; it needs the program steer-etcd"
	f.Lookup("etcd-prefix").Usage = "prefix of the keys of the kube-apiserver"
	f.Lookup("etcd-prefix").DefValue = kubernetesPrefix
	from.Prefix = kubernetesPrefix
	return cmd
}

// importData writes a snapshot of the data of a kube-apiserver, and says what it has not.
func importData(ctx context.Context, data *EtcdData, from Etcd, backup, file string, out io.Writer) error {
	var report *migrate.Report
	err := writeSnapshot(file, out, func(w io.Writer) error {
		return data.Read(ctx, from, backup, func(s migrate.Source) (err error) {
			report, err = migrate.Snapshot(ctx, s, w)
			return err
		})
	})
	if err != nil {
		return err
	}
	objects := 0
	for _, n := range report.Taken {
		objects += n
	}
	fmt.Fprintf(out, "took %d objects of %d resources\n", objects, len(report.Taken))
	for _, left := range report.Left {
		fmt.Fprintf(out, "left %s: %v\n", left.Path, left.Err)
	}
	return nil
}
