// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/scaffold/project"
)

// samplesFolder has an object of each kind.
const samplesFolder = "config/samples"

// record is the file that lists the samples that the control plane has got, one a line.
func (t *own) record() string { return filepath.Join(t.Dir, project.StateDir, "samples") }

// sample brings the samples to the control plane that it has never got: one that was
// deleted is not made again. The others come although one is refused.
func (t *own) sample(ctx context.Context) error {
	samples, changed, err := t.manifests(samplesFolder)
	if err != nil || !changed {
		return err
	}
	text, err := os.ReadFile(t.record())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	given := strings.Fields(string(text))
	var failed []error
	for _, s := range samples {
		name := nameOf(s)
		if slices.Contains(given, name) {
			continue
		}
		if err := manifest.Apply(ctx, t.client, "", []manifest.Object{s}); err != nil {
			failed = append(failed, err)
			continue
		}
		given = append(given, name)
	}
	failed = append(failed, os.WriteFile(t.record(), []byte(strings.Join(given, "\n")+"\n"), 0o644))
	if err := errors.Join(failed...); err != nil {
		delete(t.applied, samplesFolder)
		return err
	}
	return nil
}

// nameOf is the name of an object of the control plane. The version is not in it: a sample
// of another version of a kind is the same object.
func nameOf(o manifest.Object) string {
	return o.GroupVersionKind().GroupKind().String() + "/" + o.GetNamespace() + "/" + o.GetName()
}
