// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"syscall"

	"github.com/creack/pty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
)

// subresources are the streams of machines.
func (h *host) subresources() []resource.Subresource {
	return []resource.Subresource{
		stream.Log{Open: h.log}.Subresource(),
		stream.Command{Run: h.exec}.Subresource("exec"),
		stream.PortForward{Dial: h.dial}.Subresource(),
	}
}

// running returns the process of the machine that a request names.
func (h *host) running(r *resource.Request) (*process, error) {
	p := h.process(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if p == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	return p, nil
}

// log opens the output of a machine.
func (h *host) log(ctx context.Context, r *resource.Request, o stream.LogOptions) (io.ReadCloser, error) {
	p, err := h.running(r)
	if err != nil {
		return nil, err
	}
	if o.Previous {
		return nil, apierrors.NewBadRequest("a machine runs once: it has no previous log")
	}
	return p.output.open(ctx, o), nil
}

// exec runs a command on the host, beside a machine that runs.
func (h *host) exec(ctx context.Context, r *resource.Request, o stream.Options, s *stream.Session) error {
	p, err := h.running(r)
	if err != nil {
		return err
	}
	if len(o.Command) == 0 || p.exited() {
		return fmt.Errorf("machine %s is not running, or there is no command", r.Name)
	}
	cmd := exec.CommandContext(ctx, o.Command[0], o.Command[1:]...) // it is what the example is for
	cmd.Env = append(cmd.Environ(), "MACHINE="+r.Name, fmt.Sprint("MACHINE_PID=", p.cmd.Process.Pid))
	// Its children end with it when the client is gone.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if !o.TTY {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return s.Run(cmd)
	}
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	var resizing sync.WaitGroup
	ended := make(chan struct{})
	defer func() {
		close(ended)
		resizing.Wait()
		_ = terminal.Close() // it was read to its end
	}()
	if s.Resize != nil {
		resizing.Go(func() {
			for {
				select {
				case size, ok := <-s.Resize:
					if !ok {
						return
					}
					_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width}) // the command may have ended
				case <-ended:
					return
				}
			}
		})
	}
	if s.Stdin != nil {
		go func() { _, _ = io.Copy(terminal, s.Stdin) }() // it ends with the session
	}
	_, _ = io.Copy(s.Stdout, terminal) // a terminal without processes is an error on Linux
	return stream.Exit(cmd.Wait())
}

// dial connects to a port of a machine.
func (h *host) dial(ctx context.Context, r *resource.Request, port uint16) (io.ReadWriteCloser, error) {
	p, err := h.running(r)
	if err != nil {
		return nil, err
	}
	if !p.allows(port) {
		return nil, fmt.Errorf("machine %s has no port %d in spec.ports", r.Name, port)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
