// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/controlplane/migrate"
	"github.com/steer-dev/steer/storage"
)

// Etcd says where etcd is. The flags have the names that they have in kube-apiserver.
type Etcd struct {
	// Servers are the client URLs of the members. Empty: the objects are not in etcd.
	Servers []string
	// CAFile has the authority of the members; CertFile and KeyFile are this client's
	// certificate and key. All are PEM; they may be empty.
	CAFile, CertFile, KeyFile string
	// Prefix of the keys. Empty: /steer.
	Prefix string
	// RevisionFile keeps the newest revision that was seen.
	RevisionFile string
	// CompactionInterval is how much history is kept: the leader compacts etcd, with all
	// that is in it, up to what is older. 0: it does not.
	CompactionInterval time.Duration
	// LeaseTime is how long a server that leads and is not heard of keeps others from leading.
	// 0: 15 seconds.
	LeaseTime time.Duration
	// Log receives what no client sees.
	Log *slog.Logger
}

// OpenEtcd opens a store on etcd.
type OpenEtcd func(context.Context, Etcd) (storage.Elector, error)

// EtcdData copies data from and to etcd.
type EtcdData struct {
	// Save writes a snapshot of what servers keep there.
	Save func(ctx context.Context, from Etcd, w io.Writer) error
	// Restore fills it with a snapshot. Data that is there is removed, if replace says so.
	Restore func(ctx context.Context, to Etcd, view storage.View, replace bool) error
	// Read calls use with what a kube-apiserver has there or, where a file is named, in that
	// backup of an etcd.
	Read func(ctx context.Context, from Etcd, backup string, use func(migrate.Source) error) error
}

func (e *Etcd) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&e.Servers, "etcd-servers", nil, "keep the objects in etcd, at these URLs, such as https://10.0.0.1:2379; it needs the program steer-etcd")
	f.StringVar(&e.CAFile, "etcd-cafile", "", "authority of the certificates of etcd")
	f.StringVar(&e.CertFile, "etcd-certfile", "", "certificate for etcd")
	f.StringVar(&e.KeyFile, "etcd-keyfile", "", "key of the certificate for etcd")
	f.StringVar(&e.Prefix, "etcd-prefix", "", "prefix of the keys in etcd (default /steer)")
}

func (e *Etcd) addCompaction(f *pflag.FlagSet) {
	f.DurationVar(&e.CompactionInterval, "etcd-compaction-interval", 5*time.Minute, `how much history etcd keeps: the server that leads compacts it, with the keys of other
programs in the same etcd; 0 leaves the compaction to others`)
}

func (e *Etcd) validate(inMemory bool) error {
	switch {
	case len(e.Servers) == 0 && (e.CAFile != "" || e.CertFile != "" || e.KeyFile != "" || e.Prefix != ""):
		return errors.New("--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-prefix are for --etcd-servers: name the servers as well")
	case len(e.Servers) > 0 && inMemory:
		return errors.New("--in-memory keeps nothing, and --etcd-servers keeps the objects in etcd: leave one of them out")
	case e.CompactionInterval < 0 || e.CompactionInterval > 0 && e.CompactionInterval < leastHistory:
		return fmt.Errorf("--etcd-compaction-interval %v: clients need some history to go on from: at least %v, or 0 for no compaction", e.CompactionInterval, leastHistory)
	case e.LeaseTime != 0 && e.LeaseTime < leastLease:
		return fmt.Errorf("--leader-elect-lease-duration %v: etcd has leases of at least %v", e.LeaseTime, leastLease)
	case (e.CertFile == "") != (e.KeyFile == ""):
		return errors.New("--etcd-certfile and --etcd-keyfile belong together: name both")
	}
	return nil
}

// leastHistory is the shortest interval between compactions.
const leastHistory = 10 * time.Second

// leastLease is the shortest lease that etcd grants with its usual election timeout, rounded up.
const leastLease = 3 * time.Second

// siblingName is the program that has the command up with a store on etcd.
const siblingName = "steer-etcd"

// findSibling returns the path of the program: beside this one, or in the PATH.
func findSibling() (string, error) {
	name := siblingName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	install := "go install github.com/steer-dev/steer/storage/etcd/cmd/steer-etcd@"
	switch version, checkout := command.Origin(); {
	case version != "":
		install += version
	case checkout != "":
		install = "cd " + filepath.Join(checkout, "storage", "etcd") + " && go install ./cmd/steer-etcd"
	default:
		install += "latest"
	}
	return "", fmt.Errorf("--etcd-servers needs the program %s, which is neither beside %s nor in the PATH: install it with\n  %s", siblingName, self, install)
}
