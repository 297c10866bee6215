// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// diskSize is that of the disk of a member: etcd reserves some files of 64 MB for its log.
const diskSize = "512m"

// mountDisk mounts the file system that a member has its data on. The mount is in the mount
// namespace of this process, and ends with that.
func (m *Member) mountDisk(ctx context.Context) error {
	if err := os.MkdirAll(m.disk(), 0o700); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "size="+diskSize, "none", m.disk()).CombinedOutput(); err != nil {
		return fmt.Errorf("mount the disk of %s: %w: %s", m.Name, err, out)
	}
	return nil
}

// unmountDisk ends the mount, so that the folder can be removed.
func (m *Member) unmountDisk() {
	if m.data == filepath.Join(m.disk(), "data") {
		_ = exec.Command("umount", m.disk()).Run() // it ends with the namespace otherwise
	}
}

func (m *Member) disk() string { return filepath.Join(m.dir, "disk") }

func (m *Member) ballast() string { return filepath.Join(m.disk(), "ballast") }

// FillDisk leaves no space on the disk of the member, until Heal. It needs Options.Disks.
func (m *Member) FillDisk() error {
	file, err := os.Create(m.ballast())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, zeros{})
	if err = errors.Join(err, file.Close()); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk of %s is not full: %w", m.Name, err)
	}
	return nil
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// emptyDisk removes what FillDisk wrote.
func (m *Member) emptyDisk() error {
	if err := os.Remove(m.ballast()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// SlowDisk delays each flush of the member's files until Heal. It needs the program strace,
// and leave to trace.
func (m *Member) SlowDisk(ctx context.Context, delay time.Duration) error {
	m.mu.Lock()
	pid := m.cmd.Process.Pid
	m.mu.Unlock()
	m.tracer = exec.CommandContext(ctx, "strace", "-qq", "-f", "-p", strconv.Itoa(pid), "-o", "/dev/null",
		"-e", "trace=fdatasync,fsync", "-e", fmt.Sprintf("inject=fdatasync,fsync:delay_enter=%d", delay.Microseconds()))
	return m.tracer.Start()
}

// quickDisk ends SlowDisk.
func (m *Member) quickDisk() {
	if m.tracer == nil {
		return
	}
	_ = m.tracer.Process.Signal(os.Interrupt) // it may have ended with the member
	_ = m.tracer.Wait()
	m.tracer = nil
}
