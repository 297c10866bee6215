// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/scaffold/project"
)

// serverPackage is the custom API server of a project, as steer create server makes it.
const serverPackage = "./cmd/server"

// localServer is the custom API server of a project while it runs beside the operator, as
// an administrator.
type localServer struct {
	*own
	address string // that it listens on
	child   *children.Child
	ended   chan struct{} // closed when child has ended
}

// renew brings the server to what the sources say, if the project has one. It is there
// before the operator starts. On an error of the build what runs goes on.
func (s *localServer) renew(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.Dir, filepath.FromSlash(serverPackage))); err != nil {
		s.end()
		return nil // it has none
	}
	// PROJECT lists its kinds, and changes with them.
	p, err := project.Read(s.Dir)
	if err != nil {
		return err
	}
	if err := s.compile(ctx, s.binary(), serverPackage, "-ldflags=-w"); err != nil {
		return err
	}
	// What was built stays where it is, so that Go finds it up to date next time.
	built, err := os.ReadFile(s.binary() + next)
	if err != nil {
		return err
	}
	if runs, err := os.ReadFile(s.binary()); err == nil && s.running() && bytes.Equal(runs, built) {
		return nil
	}
	s.end()
	if err := os.WriteFile(s.binary(), built, 0o755); err != nil { // a program
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, webhooks.Patience, errors.New("it is not available"))
	defer cancel()
	for _, kind := range p.Served {
		if err := s.await(waiting, kind.Version+"."+kind.APIGroup()); err != nil {
			return fmt.Errorf("the custom API server: %w", err)
		}
	}
	return nil
}

func (s *localServer) running() bool {
	if s.child == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *localServer) binary() string { return filepath.Join(s.folder(), executable("server")) }

// begin starts the server that was built last.
func (s *localServer) begin() error {
	child := exec.Command(s.binary(), // the program that was built above
		"--kubeconfig="+s.kubeconfig, "--bind-address="+s.address, "--service-namespace=default", "--external-name=localhost",
		"--data-dir="+filepath.Join(s.Dir, project.StateDir, "server"), "--drain=-1s")
	child.Dir, child.Stdout, child.Stderr = s.Dir, s.Errs, s.Errs
	child.WaitDelay = stopOutput
	running, err := children.Start(child)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = running.Wait() // what it said is printed
	}()
	s.child, s.ended = running, ended
	return nil
}

// await waits until the API server passes requests of a version on to the server.
func (s *localServer) await(ctx context.Context, name string) error {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	for {
		err := s.client.Get(ctx, client.ObjectKey{Name: name}, service)
		if err == nil && available(service) {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("APIService %s: %w", name, context.Cause(ctx))
		case <-time.After(watchSources):
		}
	}
}

// available reports whether an APIService has the condition Available.
func available(service *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == "Available" {
			return condition["status"] == "True"
		}
	}
	return false
}

// end stops the server, if it runs, and waits for it.
func (s *localServer) end() {
	if s.child == nil {
		return
	}
	s.child.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopOperator):
		s.child.Kill()
		<-s.ended
	}
	s.child = nil
}

// compile builds a package beside the binary that runs, which cannot be overwritten
// everywhere.
func (l *loop) compile(ctx context.Context, binary, pkg string, args ...string) error {
	build := exec.Command("go", append(append([]string{"build"}, args...), "-o", binary+next, pkg)...) // a package of the project
	var said bytes.Buffer
	build.Dir, build.Stdout, build.Stderr = l.Dir, &said, &said
	err := children.Run(ctx, build)
	fmt.Fprint(l.Errs, said.String())
	if err != nil {
		return &buildError{pkg, strings.Split(strings.TrimSpace(said.String()), "\n"), err}
	}
	return nil
}
