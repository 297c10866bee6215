// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
	"github.com/steer-dev/steer/storage/storagetest"
)

// member is an etcd process of a cluster of one.
type member struct {
	binary, dir string
	flags       []string
	child       *children.Child
	process     *os.Process
}

// binary returns where etcd is: in the folder STEER_UPSTREAM_BIN, the one that module
// oracle builds, or the PATH.
func binary() string {
	for _, dir := range []string{os.Getenv("STEER_UPSTREAM_BIN"), filepath.Join("..", "..", "oracle", "bin")} {
		path, err := filepath.Abs(filepath.Join(dir, "etcd"))
		if err != nil || dir == "" {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("etcd")
	if err != nil {
		return ""
	}
	return path
}

// newMember starts etcd in a folder; flags are added to those that it needs.
func newMember(dir string, flags ...string) (*member, error) {
	m := &member{binary: binary(), dir: dir, flags: flags}
	return m, m.start()
}

// start starts the process, again after kill. Its sockets are files, because ports may be
// taken.
func (m *member) start() error {
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has it
	cmd := exec.Command(m.binary, append([]string{
		"--data-dir=data",
		"--listen-client-urls=unix://localhost:1", "--advertise-client-urls=unix://localhost:1",
		"--listen-peer-urls=unix://localhost:2", "--initial-advertise-peer-urls=unix://localhost:2",
		"--initial-cluster=default=unix://localhost:2", "--log-level=error", "--max-request-bytes=33554432",
	}, m.flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, log, log
	if m.child, err = children.Start(cmd); err != nil {
		return err
	}
	m.process = cmd.Process
	return nil
}

// kill ends the process as kill -9 does.
func (m *member) kill() {
	m.child.Kill()
	_ = m.child.Wait() // it was killed
}

// pause stops the process, and returns when it has stopped: kill(2) returns before, and what
// etcd is sent meanwhile it may still answer.
func (m *member) pause(t *testing.T) {
	t.Helper()
	if err := m.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(m.process.Pid, &status, syscall.WUNTRACED, nil)
		if err == nil && status.Stopped() {
			return
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatalf("etcd has not stopped: status %v, %v", status, err)
		}
	}
}

// resume lets a paused process go on.
func (m *member) resume(t *testing.T) {
	t.Helper()
	if err := m.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func (m *member) endpoint() string { return "unix://" + filepath.Join(m.dir, "localhost:1") }

// options are those of a store on a new prefix, with a lease that outlasts a busy machine.
func (m *member) options() etcd.Options {
	return etcd.Options{Endpoints: []string{m.endpoint()}, Prefix: fmt.Sprint("/test", prefixes.Add(1)), LeaseTime: time.Minute}
}

var (
	prefixes atomic.Int64
	// shared is the etcd of the tests that need none of their own.
	shared = sync.OnceValues(func() (*member, error) {
		dir, err := os.MkdirTemp("", "steer-etcd-")
		if err != nil {
			return nil, err
		}
		return newMember(dir, "--unsafe-no-fsync", "--quota-backend-bytes=8589934592")
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	if binary() != "" {
		if m, err := shared(); err == nil {
			m.kill()
			_ = os.RemoveAll(m.dir)
		}
	}
	os.Exit(code)
}

// sharedMember returns the etcd that tests share.
func sharedMember(t *testing.T) *member {
	t.Helper()
	needsEtcd(t)
	m, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func needsEtcd(t *testing.T) {
	t.Helper()
	if binary() == "" {
		t.Skip("there is no etcd: install it, or name the folder that has it in STEER_UPSTREAM_BIN")
	}
}

// open opens a store, which is closed at the end of the test.
func open(t *testing.T, o etcd.Options) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a second Close does nothing
	return s
}

// lead opens a store that leads.
func lead(t *testing.T, o etcd.Options) *etcd.Store {
	t.Helper()
	s := open(t, o)
	if _, err := s.Campaign(t.Context(), storage.Member{Identity: "one"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func fresh(t *testing.T) storage.Store { return lead(t, sharedMember(t).options()) }

// The suite compares revisions, so that nothing else may write to the same etcd.
func TestStoreThatLeadsKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return lead(t, ownMember(t, "--unsafe-no-fsync", "--heartbeat-interval=10", "--election-timeout=200").options())
	})
}

func TestStoreAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storagetest.Model(t, fresh, storagetest.ModelOptions{Runs: 4, Steps: 300})
}

func TestStoreIsLinearizable(t *testing.T) {
	t.Parallel()
	storagetest.Linearize(t, fresh)
}

func TestStoresOfOnePrefixKeepTheContractOfElections(t *testing.T) {
	t.Parallel()
	m := sharedMember(t)
	storagetest.Elections(t, storagetest.Servers{
		Open: func(t *testing.T, n int) []storage.Elector {
			o := m.options()
			var servers []storage.Elector
			for range n {
				servers = append(servers, open(t, o))
			}
			return servers
		},
		Expire: func(t *testing.T, leader storage.Elector) {
			t.Helper()
			if err := leader.(*etcd.Store).Expire(t.Context()); err != nil {
				t.Error(err)
			}
		},
	})
}
