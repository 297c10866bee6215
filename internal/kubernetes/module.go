// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
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
	passedOver      []string // newer versions of staging that need a newer Go than this
}

func (r release) String() string {
	if r.server == "" {
		return r.staging
	}
	return strings.TrimPrefix(r.server, "v")
}

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
	r, suffix := release{minor: minor}, "."+strings.Join(parts[1:], ".")
	staging, err := versions(ctx, apiModule)
	if err != nil {
		return release{}, err
	}
	if r.staging, r.passedOver, err = readable(ctx, apiModule, staging, "v0"+suffix); err != nil {
		return release{}, err
	}
	if r.staging == "" {
		return release{}, fmt.Errorf("no version %s of %s is published that this Go can read (%s)", written, apiModule, strings.Join(r.passedOver, ", "))
	}
	server, err := versions(ctx, serverModule)
	if err != nil {
		return release{}, err
	}
	// The server of a patch may be published when that of another is not.
	if r.server, _, err = readable(ctx, serverModule, server, "v1"+suffix); err != nil {
		return release{}, err
	}
	if r.server != "" && semver.Prerelease(r.server) == "" {
		if same := "v0" + strings.TrimPrefix(r.server, "v1"); slices.Contains(staging, same) {
			r.staging = same
		}
	}
	return r, nil
}

// readable returns the newest of the versions that the Go that runs may read, and those that
// it passed over.
func readable(ctx context.Context, module string, all []string, want string) (version string, passedOver []string, err error) {
	all = slices.Clone(all)
	for {
		version := newest(all, want)
		if version == "" {
			return "", passedOver, nil
		}
		_, err := download(ctx, module, version)
		if err == nil || !strings.Contains(err.Error(), "requires go >=") {
			return version, passedOver, err
		}
		passedOver = append(passedOver, version)
		all = slices.DeleteFunc(all, func(v string) bool { return v == version })
	}
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

// download returns the folder with the sources of a module.
func download(ctx context.Context, module, version string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version).Output()
	var answer struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &answer); decodeErr == nil && answer.Error != "" {
		return "", errors.New(answer.Error)
	}
	return answer.Dir, explained(err)
}

// explained adds to an error of a command what it wrote.
func explained(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
