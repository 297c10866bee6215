// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Size is the number of members, and of servers.
const Size = 3

// Options of [Start]. All are required but LeaseTime and Disks.
type Options struct {
	// Dir has the data of all. Its path is short: sockets are in it.
	Dir string
	// Etcd and Steer are the programs etcd and steer-etcd.
	Etcd, Steer string
	// LeaseTime is that of the leader. 0: the default of steer up.
	LeaseTime time.Duration
	// Disks gives each member a small file system, which can be full. This process may mount
	// such, and has a mount namespace of its own.
	Disks bool
	// Log receives what happens.
	Log func(format string, args ...any)
}

// Cluster is three members of etcd and three servers.
type Cluster struct {
	Options

	Members  []*Member
	Servers  []*Server
	Balancer *Balancer
	// Client of etcd, which no fault of the network concerns.
	Client *clientv3.Client
}

// Server is a steer up.
type Server struct {
	process

	Index int
	// Program is steer-etcd; Start runs it. It is Options.Steer at first.
	Program string
	// Etcd are the links to the members.
	Etcd []*Link
	// Inbound is the link on which other servers reach it.
	Inbound *Link

	cluster *Cluster
	port    int
}

// Start starts a cluster, and returns when all servers are up.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{Options: o}
	var err error
	if c.Balancer, err = newBalancer(); err != nil {
		return nil, err
	}
	if err := c.startMembers(ctx); err != nil {
		return c, err
	}
	for i := range Size {
		s := &Server{Index: i, Program: o.Steer, cluster: c}
		for _, m := range c.Members {
			link, err := newLink("unix", m.socket())
			if err != nil {
				return c, err
			}
			s.Etcd = append(s.Etcd, link)
		}
		if s.Inbound, err = newLink("tcp", ""); err != nil {
			return c, err
		}
		c.Servers = append(c.Servers, s)
		if err := s.Start(ctx); err != nil {
			return c, err
		}
	}
	c.Balance(c.Servers...)
	return c, nil
}

func (c *Cluster) startMembers(ctx context.Context) error {
	var initial []string
	for i := range Size {
		m := &Member{Name: "m" + strconv.Itoa(i)}
		m.dir, m.log = filepath.Join(c.Dir, m.Name), "log"
		if err := os.MkdirAll(m.dir, 0o700); err != nil {
			return err
		}
		var err error
		if m.Peers, err = newLink("unix", filepath.Join(m.dir, "localhost:2")); err != nil {
			return err
		}
		m.data = filepath.Join(m.dir, "data")
		if c.Disks {
			if err := m.mountDisk(ctx); err != nil {
				return err
			}
			m.data = filepath.Join(m.disk(), "data")
		}
		c.Members = append(c.Members, m)
		initial = append(initial, m.Name+"=http://"+m.Peers.Address())
	}
	var endpoints []string
	for _, m := range c.Members {
		m.args = []string{
			c.Etcd, "--name=" + m.Name, "--data-dir=" + m.data, "--log-level=error",
			"--listen-client-urls=unix://localhost:1", "--advertise-client-urls=unix://localhost:1",
			"--listen-peer-urls=unix://localhost:2", "--initial-advertise-peer-urls=http://" + m.Peers.Address(),
			"--initial-cluster=" + strings.Join(initial, ","), "--max-request-bytes=33554432", "--strict-reconfig-check=false",
		}
		if err := m.start(); err != nil {
			return err
		}
		endpoints = append(endpoints, "unix://"+m.socket())
	}
	var err error
	if c.Client, err = clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()}); err != nil {
		return err
	}
	return c.Retry(ctx, time.Minute, func(ctx context.Context) error {
		list, err := c.Client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, found := range list.Members {
			for _, m := range c.Members {
				if m.Name == found.Name {
					m.ID = strconv.FormatUint(found.ID, 16)
				}
			}
		}
		if slices.ContainsFunc(c.Members, func(m *Member) bool { return m.ID == "" }) {
			return errors.New("a member has not started")
		}
		return nil
	})
}

// Retry calls f until it returns nil, each time with some seconds.
func (c *Cluster) Retry(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		once, cancel := context.WithTimeout(ctx, 15*time.Second)
		err := f(once)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", within, err)
		}
	}
}

// Start starts the server, and returns when it is up.
func (s *Server) Start(ctx context.Context) error {
	c := s.cluster
	s.dir, s.log = filepath.Join(c.Dir, "s"+strconv.Itoa(s.Index)), "log"
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for range 5 { // a port that was free may be taken
		if err := s.attempt(ctx); !errors.Is(err, errPort) {
			return err
		}
		s.port = 0
	}
	return errPort
}

var errPort = errors.New("no port is free")

func (s *Server) attempt(ctx context.Context) error {
	c := s.cluster
	if s.port == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.port = l.Addr().(*net.TCPAddr).Port
		_ = l.Close() // it accepted nothing
	}
	s.Inbound.lead(s.Address())
	var endpoints []string
	for _, link := range s.Etcd {
		endpoints = append(endpoints, "http://"+link.Address())
	}
	s.args = []string{
		s.Program, "up", "--data-dir=data", "--cert-dir=" + filepath.Join(c.Dir, "pki"), "--listen=" + s.Address(),
		"--advertise-address=" + s.Inbound.Address(), "--control-plane-endpoint=" + c.Balancer.Address(),
		"--etcd-servers=" + strings.Join(endpoints, ","), "--shutdown-delay-duration=2s", "--verbose",
	}
	if c.LeaseTime != 0 {
		s.args = append(s.args, "--leader-elect-lease-duration="+c.LeaseTime.String())
	}
	log := filepath.Join(s.dir, s.log)
	at := int64(0)
	if info, err := os.Stat(log); err == nil {
		at = info.Size()
	}
	if err := s.start(); err != nil {
		return err
	}
	up := regexp.MustCompile(`steer is up at`)
	return c.Retry(ctx, 2*time.Minute, func(context.Context) error {
		text, err := tail(log, at)
		switch {
		case err != nil:
			return err
		case up.MatchString(text):
			return nil
		}
		select {
		case <-s.ended:
			s.kill()
			if strings.Contains(text, "is in use by another program") {
				return errPort
			}
			return fmt.Errorf("server %d has ended: %s", s.Index, lastLine(text))
		default:
			return fmt.Errorf("server %d is not up", s.Index)
		}
	})
}

// tail returns a file from a position on.
func tail(file string, at int64) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil || int64(len(text)) < at {
		return "", err
	}
	return string(text[at:]), nil
}

func lastLine(text string) (line string) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line = lines.Text()
	}
	return line
}

// Address is where the server listens.
func (s *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Kubeconfig is the file for clients of the balancer.
func (s *Server) Kubeconfig() string { return filepath.Join(s.dir, "data", "kubeconfig") }

// Kill ends the server as kill -9 does.
func (s *Server) Kill() { s.kill() }

// Stop has the server end, as a service manager does.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Balance has the balancer lead to servers.
func (c *Cluster) Balance(servers ...*Server) {
	var targets []string
	for _, s := range servers {
		targets = append(targets, s.Address())
	}
	c.Balancer.Lead(targets...)
}

// Leader returns the server that leads, and one that does not.
func (c *Cluster) Leader(ctx context.Context) (leader, follower *Server, err error) {
	err = c.Retry(ctx, time.Minute, func(ctx context.Context) error {
		resp, err := c.Client.Get(ctx, "/steer/.steer/leader")
		if err != nil {
			return err
		}
		for _, s := range c.Servers {
			switch {
			case len(resp.Kvs) > 0 && strings.Contains(string(resp.Kvs[0].Value), s.Inbound.Address()):
				leader = s
			default:
				follower = s
			}
		}
		if leader == nil {
			return errors.New("no server leads")
		}
		return nil
	})
	return leader, follower, err
}

// Heal has all processes run and the whole network work.
func (c *Cluster) Heal(ctx context.Context) error {
	for _, m := range c.Members {
		m.Peers.Heal()
		m.quickDisk()
		m.Resume()
		if err := m.emptyDisk(); err != nil {
			return err
		}
		if m.gone() {
			m.kill()
		}
		if err := m.Start(); err != nil {
			return err
		}
	}
	for _, s := range c.Servers {
		s.Inbound.Heal()
		for _, link := range s.Etcd {
			link.Heal()
		}
		s.Resume()
		if s.gone() {
			s.kill()
			if err := s.Start(ctx); err != nil {
				return err
			}
		}
	}
	c.Balance(c.Servers...)
	return nil
}

// Close ends all processes.
func (c *Cluster) Close() {
	for _, s := range c.Servers {
		s.kill()
		s.Inbound.close()
		for _, link := range s.Etcd {
			link.close()
		}
	}
	if c.Client != nil {
		_ = c.Client.Close() // nothing waits
	}
	for _, m := range c.Members {
		m.quickDisk()
		m.kill()
		m.Peers.close()
		m.unmountDisk()
	}
	_ = c.Balancer.listener.Close()
}
