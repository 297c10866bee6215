// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// patience is how long a process may take to end by itself.
const patience = 5 * time.Second

// process is a child that is joined: done is closed after it ended.
type process struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
}

func start(log io.Writer, binary string, flags ...string) (*process, error) {
	p := &process{command: exec.Command(binary, flags...), done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = log, log
	endWithParent(p.command)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.command.Wait()
	}()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// stop asks the process to end, insists after a while, and returns when it is
// gone.
func (p *process) stop() error {
	if err := p.command.Process.Signal(os.Interrupt); err == nil {
		select {
		case <-p.done:
			return nil
		case <-time.After(patience):
		}
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill process %d: %w", p.pid(), err)
	}
	<-p.done
	return nil
}

// writeKey makes the key that signs service account tokens.
func writeKey(file string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
}
