// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/steer-dev/steer/scaffold/project"
)

const (
	// assetsDir is the folder of setup-envtest for the programs of envtest.
	assetsDir = "k8s"
	// asideDir is the name that it gets if it has programs of Kubernetes.
	asideDir = "k8s.before-steer"
)

var (
	exact    = regexp.MustCompile(`^v?(\d+\.\d+)\.(\d+)$`)
	selector = regexp.MustCompile(`^v?(\d+\.\d+)(?:\.[x*]!?)?$`)
)

// Assets makes the folder that setup-envtest makes for a version of Kubernetes, with
// the given program under the names of etcd and kube-apiserver, and kubectl if there is
// one on the path. A folder with programs of Kubernetes becomes k8s.before-steer: suites
// take the first one that they find.
func Assets(binDir, version, program string) (string, error) {
	switch {
	case exact.MatchString(version):
		version = strings.TrimPrefix(version, "v")
	case selector.MatchString(version):
		version = selector.FindStringSubmatch(version)[1] + ".0"
	default:
		return "", project.Usagef("%q is no version of Kubernetes: give one such as 1.37 or 1.37.0", version)
	}
	binDir, err := filepath.Abs(binDir)
	if err != nil {
		return "", err
	}
	base := filepath.Join(binDir, assetsDir)
	if foreign, err := hasForeign(base, program); err != nil {
		return "", err
	} else if foreign {
		if err := os.Rename(base, filepath.Join(binDir, asideDir)); err != nil {
			return "", fmt.Errorf("%s has programs of Kubernetes: %w; remove one of the folders", base, err)
		}
	}
	dir := filepath.Join(base, version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := link(program, filepath.Join(dir, executable(name))); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// hasForeign reports whether a folder has an etcd that is not a link to Steer.
func hasForeign(base, program string) (bool, error) {
	found, err := filepath.Glob(filepath.Join(base, "*", executable("etcd")))
	for _, file := range found {
		if !isSteer(file, program) {
			return true, err
		}
	}
	return false, err
}

// isSteer reports whether a file is a link to the program or to one of its names, or a
// copy of it.
func isSteer(file, program string) bool {
	target, err := os.Readlink(file)
	if err == nil {
		name := filepath.Base(target)
		return target == program || strings.HasPrefix(name, "steer") || strings.HasPrefix(name, "setup-envtest")
	}
	_, err = os.Stat(file + copied)
	return err == nil
}

// copied is beside a copy of Steer, where there are no links.
const copied = ".steer"

// link makes a file be the program; where there are no links, a copy of it.
func link(program, file string) error {
	if target, err := os.Readlink(file); err == nil && target == program {
		return nil
	}
	temp := file + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(program, temp); err != nil {
		if err := copyFile(program, temp); err != nil {
			return err
		}
		if err := os.WriteFile(file+copied, nil, 0o644); err != nil {
			return err
		}
	}
	return os.Rename(temp, file)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// removeInstalled removes the links that are installed as tools, the programs beside
// them that they lead to, and the folder of [Assets], in whose place comes what it
// replaced.
func removeInstalled(tools []string) error {
	for _, file := range tools {
		target, err := os.Readlink(file)
		if err != nil || !strings.HasPrefix(target, "steer-") {
			continue // it is not ours
		}
		dir := filepath.Dir(file)
		if err := errors.Join(os.Remove(file), remove(filepath.Join(dir, target))); err != nil {
			return err
		}
		base := filepath.Join(dir, assetsDir)
		if foreign, err := hasForeign(base, ""); foreign || err != nil {
			continue
		}
		if err := os.RemoveAll(base); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, asideDir), base); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
