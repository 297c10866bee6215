// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package up holds the commands up, snapshot and service: a control plane with its data directory. It
// is not internal, because a program of module storage/etcd has the command as well.
package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/storage/local"
)

// shutdownTimeout is how long requests in flight may take when steer up stops.
const shutdownTimeout = 5 * time.Second

// upOptions are the flags of steer up.
type upOptions struct {
	dataDir    string
	inMemory   bool
	workloads  bool
	noNode     bool
	balancers  string
	outcomes   []string
	bare       bool
	listen     string
	page       string
	kubeconfig string
	tokenFile  string
	kubelets   planeflags.Kubelets
	serviceIPs []string
	services   planeflags.Services
	// admissionControl is the value of --admission-control-config-file.
	admissionControl string
	audit            planeflags.Audit
	verbose          bool
	flags            map[string]string // all of them with their values
	several          several
	etcd             Etcd
	open             OpenEtcd
}

// New returns the command up. It opens etcd with open; nil: the program steer-etcd, which
// links its client, runs in place of this one where etcd is named.
func New(open OpenEtcd) *cobra.Command {
	o := upOptions{open: open}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a Kubernetes control plane",
		Long: `Run a Kubernetes control plane until it is interrupted.

It keeps its data, its keys and a kubeconfig in the data directory, by default
$XDG_STATE_HOME/steer or ~/.local/state/steer. What it has acknowledged survives
a crash of the process and of the machine.

With --etcd-servers the objects are in etcd, and any number of servers may share
it: one of them executes all writes, and another takes over when it is gone. All
have the same authorities and keys: copy the folder pki in the data directory of
the first server before others are started, or name a folder with --cert-dir that
all of them read. Keys are never stored in etcd.`,
		Example: `  steer up
  steer up --in-memory --listen 127.0.0.1:0
  steer up --kubeconfig ~/.kube/config    # and use kubectl as it is
  steer up --workloads --outcome 'app=web: ready after 2s' --outcome 'app=db @shop: crash loop'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.etcd.Servers) > 0 && o.open == nil {
				return runSibling(cmd.Context(), os.Args[1:], o.several.delay)
			}
			o.flags = planeflags.Values(cmd.Flags())
			return up(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", "", "directory for data, keys and kubeconfig (default $XDG_STATE_HOME/steer or ~/.local/state/steer)")
	f.BoolVar(&o.inMemory, "in-memory", false, "keep nothing on disk")
	f.BoolVar(&o.workloads, "workloads", false, "simulate a node and the controllers of Deployments, Jobs and their like")
	f.BoolVar(&o.noNode, "no-node", false, `with --workloads, simulate no node from the start: Pods wait for nodes that a user creates.
Those with the label steer.dev/simulated=true are simulated, all others are left to those who made them`)
	f.StringVar(&o.balancers, "load-balancers", "", `with --workloads, the range of the addresses of Services of type LoadBalancer, or none (default 203.0.113.0/24)`)
	f.StringArrayVar(&o.outcomes, "outcome", nil, `what becomes of Pods with --workloads: "SELECTOR [@NAMESPACE]: FATE [after DURATION]" with a fate of
ready, crash loop, never, unschedulable, complete or fail [with EXITCODE]; may be repeated, the first that selects a Pod decides`)
	f.BoolVar(&o.bare, "bare", false, "run no controllers, as a kube-apiserver alone: namespaces stay, nothing is collected, Pods need no ServiceAccount")
	f.StringVar(&o.listen, "listen", "127.0.0.1:6443", "address to serve on; port 0 picks a free one")
	f.StringVar(&o.page, "page-bind-address", "127.0.0.1:0", "address of this machine for a page of what it has, printed with a token; port 0 picks a free one, and 0 is no page")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file to write; other contexts in it stay (default: kubeconfig in the data directory)")
	f.StringVar(&o.tokenFile, "token-file", "", `file with bearer tokens to accept: lines of token,user,uid,"group,group"`)
	o.kubelets.AddFlags(f)
	planeflags.AddServiceRanges(f, &o.serviceIPs)
	o.services.AddFlags(f, "")
	planeflags.AddAdmissionControl(f, &o.admissionControl)
	o.audit.AddFlags(f)
	o.etcd.addFlags(f)
	o.etcd.addCompaction(f)
	f.DurationVar(&o.etcd.LeaseTime, "leader-elect-lease-duration", 15*time.Second, "how long a server that leads and is not heard of keeps others from leading, with --etcd-servers")
	o.several.addFlags(f)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log what no client sees, also where nothing failed")
	return cmd
}

// up runs a control plane until ctx ends.
func up(ctx context.Context, o upOptions, out, logs io.Writer) (err error) {
	options, err := o.plane(out, logs)
	if err != nil {
		return err
	}
	home, cleanup, err := upHome(o, &options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	if err := addressIsFree(o.listen); err != nil {
		return explain(err, o.listen, home)
	}
	where := "in memory, gone when it stops"
	if !o.inMemory {
		where = "data in " + home
	}
	if len(o.etcd.Servers) > 0 {
		where = "data in etcd at " + strings.Join(o.etcd.Servers, ",")
		o.etcd.RevisionFile = filepath.Join(home, "etcd-revision")
		o.etcd.Log = options.Log
		store, err := o.open(ctx, o.etcd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		options.Store = store
	}
	plane, err := controlplane.New(options)
	if err != nil {
		return explain(err, o.listen, home)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout+o.several.delay)
		defer cancel()
		err = errors.Join(err, plane.Stop(stop))
	}()
	if err := plane.Start(ctx); err != nil {
		return explain(err, o.listen, home)
	}
	kubeconfig := o.kubeconfig
	if kubeconfig == "" {
		kubeconfig = filepath.Join(home, "kubeconfig")
	}
	if err := plane.WriteKubeconfig(kubeconfig); err != nil {
		return explain(err, o.listen, home)
	}
	page, stopPage, err := servePage(ctx, o.page, plane.RESTConfig())
	if err != nil {
		return err
	}
	defer stopPage()
	fmt.Fprintf(out, `steer is up at %s (Kubernetes API 1.37), %s

  export KUBECONFIG=%s
  kubectl get namespaces
%s
Stop it with Ctrl-C.
`, plane.URL(), where, kubeconfig, page)
	<-ctx.Done()
	return nil
}

// plane returns what the flags say about the control plane, without where its data is.
func (o *upOptions) plane(out, logs io.Writer) (options controlplane.Options, err error) {
	if o.inMemory && o.dataDir != "" {
		return options, errors.New("--in-memory keeps nothing, so there is no use for --data-dir: leave one of them out")
	}
	if err := o.etcd.validate(o.inMemory); err != nil {
		return options, err
	}
	options = controlplane.Options{Listen: o.listen, Version: command.Version(), Flags: o.flags}
	if err := o.several.apply(&options); err != nil {
		return options, err
	}
	for _, file := range readable(o.several.certDir) {
		fmt.Fprintf(logs, "warning: other users of this machine can read %s, and act as any user with it: run chmod 600 on it\n", file)
	}
	if o.bare {
		// Nothing makes the accounts that the plugin would ask for.
		options.Disable = append(controlplane.Controllers(), "ServiceAccount")
	}
	if err := simulate(&options, *o); err != nil {
		return options, err
	}
	if options.ServiceRanges, err = planeflags.ServiceRanges(o.serviceIPs); err != nil {
		return options, err
	}
	if err := o.kubelets.Apply(&options.Kubelets); err != nil {
		return options, err
	}
	if err := o.services.Apply(&options.Webhooks); err != nil {
		return options, err
	}
	if o.services.Changeable && len(o.etcd.Servers) > 0 {
		return options, fmt.Errorf("--%s changes the addresses of this server alone, and others may share its etcd: leave it out, and give --%s to each of them", planeflags.AllowServiceChanges, serviceaddress.Flag)
	}
	if err := planeflags.ReadAdmissionControl(&options, o.admissionControl); err != nil {
		return options, err
	}
	level := slog.LevelError
	if o.verbose {
		level = slog.LevelDebug
	}
	options.Log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
	if err := planeflags.ReadTokens(&options, o.tokenFile); err != nil {
		return options, err
	}
	return options, o.audit.Apply(&options, out)
}

// simulate takes over what the flags say about simulated workloads.
func simulate(options *controlplane.Options, o upOptions) error {
	if !o.workloads {
		if len(o.outcomes) > 0 {
			return errors.New("--outcome scripts what becomes of simulated Pods: add --workloads")
		}
		if o.noNode {
			return errors.New("--no-node leaves the simulated node out, and without --workloads there is none: leave it out, or add --workloads")
		}
		if o.balancers != "" {
			return errors.New("--load-balancers says which addresses the Services of simulated workloads get: add --workloads")
		}
		return nil
	}
	options.Workloads = &workloads.Options{NoNode: o.noNode, LoadBalancers: o.balancers}
	for _, text := range o.outcomes {
		outcome, err := workloads.ParseOutcome(text)
		if err != nil {
			return err
		}
		options.Workloads.Outcomes = append(options.Workloads.Outcomes, outcome)
	}
	return nil
}

// upHome returns the directory that belongs to this run and how to clean it up.
func upHome(o upOptions, options *controlplane.Options) (string, func() error, error) {
	if o.inMemory {
		if o.kubeconfig != "" {
			return "", func() error { return nil }, nil
		}
		dir, err := os.MkdirTemp("", "steer-")
		if err != nil {
			return "", nil, fmt.Errorf("cannot make a directory for the kubeconfig: %w; name a file with --kubeconfig", err)
		}
		return dir, func() error { return os.RemoveAll(dir) }, nil
	}
	dir := o.dataDir
	if dir == "" {
		var err error
		if dir, err = defaultDataDir(); err != nil {
			return "", nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("cannot find the data directory %s: %w; name it with its whole path", dir, err)
	}
	options.DataDir = dir
	return dir, func() error { return nil }, nil
}

// defaultDataDir is where the data goes without a flag.
func defaultDataDir() (string, error) {
	state, err := command.StateDir()
	if err != nil {
		return "", errors.New("there is no home directory to keep the data in: choose a directory with --data-dir, or keep nothing with --in-memory")
	}
	return filepath.Join(state, "steer"), nil
}

// addressIsFree finds out about a busy port before anything is written.
func addressIsFree(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// explain says in one line what is wrong and what to do about it.
func explain(err error, listen, home string) error {
	var op *net.OpError
	var inUse *local.InUseError
	var path *fs.PathError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another program: stop that, or choose another address with --listen, such as 127.0.0.1:0", listen)
	case errors.As(err, &op) && op.Op == "listen":
		return fmt.Errorf("cannot listen on %s: %w: choose another address with --listen", listen, op.Err)
	case errors.As(err, &inUse):
		return fmt.Errorf("the data directory %s is in use by another process: stop that, or choose another one with --data-dir", home)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full: make room for the data directory %s, or choose another one with --data-dir", home)
	case errors.As(err, &path) && isUnusable(path.Err) && home != "" && (strings.HasPrefix(path.Path, home) || strings.HasPrefix(home, path.Path)):
		return fmt.Errorf("cannot use the data directory %s: %s: %w: choose another one with --data-dir, or keep nothing with --in-memory", home, path.Path, path.Err)
	}
	return err
}

// isUnusable tells the errors of directories that cannot be made or written to.
func isUnusable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)
}
