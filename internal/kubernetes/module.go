// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goversion "go/version"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

const (
	apiModule    = "k8s.io/api"
	serverModule = "k8s.io/kubernetes"
)

// release is a version of Kubernetes: of the modules of staging, and of the server, which is
// empty if it is not published.
type release struct {
	minor           int
	staging, server string
	published       []string // what there is of the minor, as module@version
}

func (r release) String() string {
	if r.server == "" {
		return r.staging
	}
	return strings.TrimPrefix(r.server, "v")
}

// released reports whether the server is published, and no version before the first.
func (r release) released() bool { return r.server != "" && semver.Prerelease(r.server) == "" }

// find returns the release that is written as 1.38, 1.37.2, v1.37.2 or v0.37.2. Of a minor it
// is the newest patch that is published as modules, or the newest version before the first.
func find(ctx context.Context, written string) (release, error) {
	parts := strings.SplitN(strings.TrimPrefix(written, "v"), ".", 3)
	if len(parts) < 2 || parts[0] != "0" && parts[0] != "1" {
		return release{}, fmt.Errorf("%q is no version of Kubernetes: give one such as 1.38 or 1.37.2", written)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return release{}, fmt.Errorf("%q is no version of Kubernetes: give one such as 1.38 or 1.37.2", written)
	}
	staging, err := versions(ctx, apiModule)
	if err != nil {
		return release{}, err
	}
	server, err := versions(ctx, serverModule)
	if err != nil {
		return release{}, err
	}
	return choose(minor, "."+strings.Join(parts[1:], "."), staging, server)
}

// choose returns the release of a minor whose versions end as suffix says, of those that are
// published of staging and of the server.
func choose(minor int, suffix string, staging, server []string) (release, error) {
	r := release{minor: minor, staging: newest(staging, "v0"+suffix), server: newest(server, "v1"+suffix)}
	if r.staging == "" {
		return release{}, fmt.Errorf("no version 1%s of %s is published: %s has %s", suffix, apiModule, apiModule, strings.Join(staging[max(0, len(staging)-3):], ", "))
	}
	// The server of a patch may be published when that of another is not, and the libraries
	// of a release before its server.
	switch same := "v0" + strings.TrimPrefix(r.server, "v1"); {
	case r.server == "" || same == r.staging:
	case slices.Contains(staging, same) && (r.released() || semver.Prerelease(r.staging) != ""):
		r.staging = same
	default:
		r.server = ""
	}
	for module, all := range map[string][]string{apiModule: of(staging, "v0.", minor), serverModule: of(server, "v1.", minor)} {
		for _, version := range all {
			r.published = append(r.published, module+"@"+version)
		}
	}
	slices.Sort(r.published)
	return r, nil
}

// of returns the versions of a minor.
func of(all []string, major string, minor int) (out []string) {
	for _, v := range all {
		if strings.HasPrefix(v, major+strconv.Itoa(minor)+".") {
			out = append(out, v)
		}
	}
	return out
}

// newest returns the newest of the versions that are the wanted one or patches of it: a release,
// if there is one.
func newest(all []string, want string) string {
	var found []string
	for _, v := range all {
		if v == want || strings.HasPrefix(v, want+".") {
			found = append(found, v)
		}
	}
	released := slices.DeleteFunc(slices.Clone(found), func(v string) bool { return semver.Prerelease(v) != "" })
	if len(released) > 0 {
		found = released
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, semver.Compare)
}

// versions are those of a module that the module proxy has.
func versions(ctx context.Context, module string) ([]string, error) {
	out, err := goList(ctx, "-versions", module)
	if err != nil {
		return nil, err
	}
	return strings.Fields(out)[1:], nil
}

func goList(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"list", "-m"}, args...)...).Output()
	return string(out), explained(err)
}

// sources are the files of published modules: where Go keeps them, and of modules that want a
// newer Go than runs, which it does not unpack, in a folder of their own.
type sources struct {
	unpacked string
	env      []string // of the go command, beside the environment
}

// dir returns the folder with the sources of a module.
func (s sources) dir(ctx context.Context, module, version string) (string, error) {
	c := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	c.Env = append(os.Environ(), s.env...)
	out, err := c.Output()
	var answer struct{ Dir, Zip, Error string }
	if decodeErr := json.Unmarshal(out, &answer); decodeErr != nil {
		return "", errors.Join(explained(err), decodeErr)
	}
	switch {
	case answer.Error == "":
		return answer.Dir, explained(err)
	case answer.Zip == "" || !strings.Contains(answer.Error, "requires go >="):
		return "", errors.New(answer.Error)
	}
	dir := filepath.Join(s.unpacked, filepath.FromSlash(module)+"@"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, zip.Unzip(dir, gomodule.Version{Path: module, Version: version}, answer.Zip)
}

// newerGo returns the version of Go that a module requires, if that is newer than the one
// that runs.
func (s sources) newerGo(ctx context.Context, module, version string) (string, error) {
	dir, err := s.dir(ctx, module, version)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	file, err := modfile.ParseLax(path, text, nil)
	if err != nil || file.Go == nil {
		return "", err
	}
	runs, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return "", explained(err)
	}
	if goversion.Compare(strings.TrimSpace(string(runs)), "go"+file.Go.Version) >= 0 {
		return "", nil
	}
	return file.Go.Version, nil
}

// explained adds to an error of a command what it wrote.
func explained(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
