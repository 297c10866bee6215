// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
)

const (
	// tick and election are short: all members are in one process.
	tick, election = 50 * time.Millisecond, 500 * time.Millisecond
	// restart is how soon a member that ended is started again.
	restart = 200 * time.Millisecond
)

// member is a Pod that runs.
type member struct {
	pod     *corev1.Pod
	dir     string // of its data
	backups string
	ctx     context.Context // ends with the Pod
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended
	serves  atomic.Bool
}

// run keeps the member running, and calls ready each time when it serves.
func (m *member) run(ready func()) {
	for m.ctx.Err() == nil {
		_ = m.once(ready) // like a kubelet: the next start may succeed
		select {
		case <-m.ctx.Done():
		case <-time.After(restart):
		}
	}
}

func (m *member) once(ready func()) error {
	cfg, err := m.config()
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	defer m.serves.Store(false)
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return err
	case <-m.ctx.Done():
		return nil
	}
	m.serves.Store(true)
	ready()
	select {
	case err := <-server.Err():
		return err
	case <-server.Server.StopNotify():
		return errors.New("it was removed from its cluster")
	case <-m.ctx.Done():
		return nil
	}
}

// config reads the arguments of the Pod, and restores a snapshot first where an
// init container does.
func (m *member) config() (*embed.Config, error) {
	args := map[string]string{}
	for _, arg := range m.pod.Spec.Containers[0].Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		args[name] = value
	}
	peer, err := url.Parse(args["initial-advertise-peer-urls"])
	if err != nil {
		return nil, err
	}
	client, err := url.Parse(args["advertise-client-urls"])
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = args["name"], m.dir
	cfg.InitialCluster, cfg.InitialClusterToken = args["initial-cluster"], args["initial-cluster-token"]
	cfg.ClusterState = args["initial-cluster-state"]
	// In a cluster it would listen on all addresses of its Pod.
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.TickMs, cfg.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	// No member refuses a change that the operator should not have asked for.
	cfg.StrictReconfigCheck = false
	cfg.UnsafeNoFsync = true // the data goes with the Pod anyway
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(panics())
	return cfg, m.restore(cfg)
}

// panics logs only what ends the process, with its cause: of a panic of etcd the
// message alone is left otherwise, "failed to create WAL" of a full disk.
func panics() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zap.DPanicLevel))
}

func (m *member) restore(cfg *embed.Config) error {
	if _, err := os.Stat(m.dir); err == nil || len(m.pod.Spec.InitContainers) == 0 {
		return nil
	}
	command := m.pod.Spec.InitContainers[0].Command
	file := filepath.Join(m.backups, filepath.Base(command[len(command)-1]))
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: cfg.Name, OutputDataDir: cfg.Dir,
		PeerURLs: []string{cfg.AdvertisePeerUrls[0].String()}, InitialCluster: cfg.InitialCluster, InitialClusterToken: cfg.InitialClusterToken,
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	return nil
}
