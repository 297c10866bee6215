// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"cmp"
	"fmt"
	"go/build"
	"go/build/constraint"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The names that make a file depend on a platform when it is called x_NAME.go.
const (
	systems       = " aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows zos "
	architectures = " 386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le mips64p32 mips64p32le ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm "
	unixes        = " aix android darwin dragonfly freebsd hurd illumos ios linux netbsd openbsd solaris "
)

// selector decides which files of a directory a build takes, as the go command
// does without cgo.
type selector struct {
	goos, goarch string
	tags         map[string]bool
}

func newSelector(b Build) *selector {
	s := &selector{
		goos:   cmp.Or(b.GOOS, os.Getenv("GOOS"), runtime.GOOS),
		goarch: cmp.Or(b.GOARCH, os.Getenv("GOARCH"), runtime.GOARCH),
		tags:   map[string]bool{"gc": true},
	}
	for _, tag := range slices.Concat(b.Tags, build.Default.ReleaseTags) {
		s.tags[tag] = true
	}
	return s
}

func (s *selector) tag(name string) bool {
	switch {
	case s.tags[name], name == s.goos, name == s.goarch:
		return true
	case name == "linux":
		return s.goos == "android"
	case name == "solaris":
		return s.goos == "illumos"
	case name == "darwin":
		return s.goos == "ios"
	case name == "unix":
		return strings.Contains(unixes, " "+s.goos+" ")
	}
	return false
}

// byName reports whether a file's name admits it.
func (s *selector) byName(name string) bool {
	if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name[0] == '_' || name[0] == '.' {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(name, ".go"), "_")[1:]
	if n := len(parts); n >= 2 && strings.Contains(systems, " "+parts[n-2]+" ") && strings.Contains(architectures, " "+parts[n-1]+" ") {
		return s.tag(parts[n-2]) && s.tag(parts[n-1])
	}
	if n := len(parts); n >= 1 {
		if last := " " + parts[n-1] + " "; strings.Contains(systems+architectures, last) {
			return s.tag(parts[n-1])
		}
	}
	return true
}

// byContent reports whether a file's build constraint admits it.
func (s *selector) byContent(src []byte) bool {
	var plus []constraint.Expr
	for len(src) > 0 {
		line := src
		if n := bytes.IndexByte(src, '\n'); n >= 0 {
			line, src = src[:n], src[n+1:]
		} else {
			src = nil
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case bytes.HasPrefix(line, []byte("//")):
			text := string(line)
			if constraint.IsGoBuild(text) {
				expr, err := constraint.Parse(text)
				return err == nil && expr.Eval(s.tag)
			}
			if constraint.IsPlusBuild(text) {
				if expr, err := constraint.Parse(text); err == nil {
					plus = append(plus, expr)
				}
			}
			continue
		case bytes.HasPrefix(line, []byte("/*")):
			end := bytes.Index(line, []byte("*/"))
			for end < 0 && len(src) > 0 {
				n := bytes.Index(src, []byte("*/"))
				if n < 0 {
					return true
				}
				src, end = src[n+2:], 0
			}
			continue
		}
		break
	}
	for _, expr := range plus {
		if !expr.Eval(s.tag) {
			return false
		}
	}
	return true
}

// list returns the Go files of a directory that belong to the build. ErrNoFiles
// says that there is none.
func (s *selector) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if entry.IsDir() || !s.byName(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		head, err := readHead(path)
		if err != nil {
			return nil, err
		}
		if s.byContent(head) && !bytes.Contains(head, []byte("import \"C\"")) {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoFiles)
	}
	return files, nil
}

// readHead reads as much of a file as can hold its build constraint: licences are
// shorter than this.
func readHead(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, 4096)
	n, _ := file.Read(head)
	return head[:n], nil
}
