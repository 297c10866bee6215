// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// allPlatforms are the systems that releases have binaries for.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// binary is the command line for one system: steer, and steer-etcd, which steer looks for
// beside itself.
type binary struct {
	system, architecture string
	programs             []program
}

// program is one file of a binary.
type program struct {
	name string // of the file
	data []byte
	info *buildinfo.BuildInfo
}

// source is what a program is built from.
type source struct{ name, module, pkg string }

func sources() []source {
	const etcd = steerPath + "/storage/etcd"
	return []source{
		{"steer", steerPath, steerPath + "/cmd/steer"},
		{"steer-etcd", etcd, etcd + "/cmd/steer-etcd"},
	}
}

// builder builds the command line as users do it, with go install ...@VERSION from a
// module proxy: the binaries can be made again from the published modules, and have
// their version from there.
type builder struct {
	*release
	work   string // a folder of its own
	proxy  string // GOPROXY
	goRoot string // GOROOT
}

func (b *builder) start(ctx context.Context) error {
	dir := filepath.Join(b.work, "proxy")
	if err := b.writeProxy(dir); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOPROXY", "GOMODCACHE", "GOROOT")
	out, err := cmd.Output()
	if err != nil {
		return commandError(cmd, err, nil)
	}
	values := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(values) != 3 {
		return fmt.Errorf("go env printed %q", out)
	}
	proxy, cache := values[0], values[1]
	b.goRoot = values[2]
	// What was downloaded before is a proxy as well.
	b.proxy = strings.Join([]string{fileURL(dir), fileURL(filepath.Join(cache, "cache", "download")), proxy}, ",")
	return nil
}

// fileURL is the URL of a folder, C:\x included.
func fileURL(dir string) string { return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/") }

// environment of the go command. The modules of the release go to a cache of their own:
// until they are published, others with that version may come.
func (b *builder) environment(more ...string) []string {
	return append(append(os.Environ(),
		"GOPROXY="+b.proxy, "GONOSUMDB="+steerPath+","+steerPath+"/*", "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOPATH="+filepath.Join(b.work, "go"), "GOMODCACHE="+filepath.Join(b.work, "modules"), "GOBIN=",
		"CGO_ENABLED=0"), more...)
}

// binary builds for a platform, such as linux/amd64.
func (b *builder) binary(ctx context.Context, platform string) (binary, error) {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok || !strings.Contains(","+allPlatforms+",", ","+platform+",") {
		return binary{}, fmt.Errorf("%w: -platforms has %q: give some of %s", errUsage, platform, allPlatforms)
	}
	one := binary{system: system, architecture: architecture}
	for _, c := range sources() {
		p, err := b.program(ctx, one, c)
		if err != nil {
			return binary{}, err
		}
		one.programs = append(one.programs, p)
	}
	return one, nil
}

// program builds one program of a binary.
func (b *builder) program(ctx context.Context, of binary, c source) (program, error) {
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s", c.pkg+"@"+b.version)
	cmd.Dir, cmd.Env = b.work, b.environment("GOOS="+of.system, "GOARCH="+of.architecture)
	// The go command ends what it has started when it is interrupted, and then itself.
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" { // which has no such signal
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	cmd.WaitDelay = interruptTime
	if out, err := cmd.CombinedOutput(); err != nil {
		return program{}, commandError(cmd, err, out)
	}
	folder := of.system + "_" + of.architecture
	if of.system == runtime.GOOS && of.architecture == runtime.GOARCH {
		folder = ""
	}
	p := program{name: c.name}
	if of.system == "windows" {
		p.name += ".exe"
	}
	name := filepath.Join(b.work, "go", "bin", folder, p.name)
	var err error
	if p.info, err = buildinfo.ReadFile(name); err != nil {
		return program{}, err
	}
	if p.info.Main.Path != c.module || p.info.Main.Version != b.version {
		return program{}, fmt.Errorf("%s was built of %s %s, not of %s %s", name, p.info.Main.Path, p.info.Main.Version, c.module, b.version)
	}
	p.data, err = os.ReadFile(name)
	return p, err
}

// interruptTime is how long the go command may take to end.
const interruptTime = 30 * time.Second

// writeFiles writes files below a folder.
func writeFiles(dir string, files map[string]file) error {
	for name, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}
