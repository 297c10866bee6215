// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/scaffold/project"
)

// samplesFolder has an object of each kind.
const samplesFolder = "config/samples"

// record is the file that lists the samples that the control plane has got, one a line.
func (t *own) record() string { return filepath.Join(t.Dir, project.StateDir, "samples") }

// sample brings the samples to the control plane that it has never got: one that was
// deleted is not made again. The others come although one is refused, and those whose
// namespace is not there yet come later.
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
	var failed, waiting []error
	for _, s := range samples {
		name := nameOf(s)
		if slices.Contains(given, name) {
			continue
		}
		switch err := manifest.Apply(ctx, t.client, "", []manifest.Object{s}); {
		case lacksNamespace(err):
			waiting = append(waiting, err)
		case err != nil:
			failed = append(failed, err)
		default:
			given = append(given, name)
		}
	}
	if waits := errors.Join(waiting...); waits == nil {
		t.waits = ""
	} else if t.waits != waits.Error() {
		t.waits = waits.Error()
		fmt.Fprintf(t.Errs, "steer: %v: it comes when the namespace is there\n", waits)
	}
	failed = append(failed, os.WriteFile(t.record(), []byte(strings.Join(given, "\n")+"\n"), 0o644))
	err, t.refused = errors.Join(failed...), ""
	if err != nil {
		t.refused = err.Error()
	}
	if err != nil || t.waits != "" {
		delete(t.applied, samplesFolder)
	}
	return err
}

// late brings the samples whose namespace was not there, as it is where an operator makes it.
func (t *own) late(ctx context.Context) error {
	if t.waits == "" {
		return nil
	}
	told := t.refused
	if err := t.sample(ctx); err != nil && err.Error() != told {
		return err
	}
	return nil
}

// lacksNamespace reports that the server refused an object because its namespace is not there.
func lacksNamespace(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// nameOf is the name of an object of the control plane. The version is not in it: a sample
// of another version of a kind is the same object.
func nameOf(o manifest.Object) string {
	return o.GroupVersionKind().GroupKind().String() + "/" + o.GetNamespace() + "/" + o.GetName()
}
