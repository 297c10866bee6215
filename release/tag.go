// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// chooseRevision is the commit to release, and its version: the commit of the tag where
// there is one, otherwise HEAD, of which nothing may be uncommitted.
func chooseRevision(ctx context.Context, repo, version string) (revision, chosen string, err error) {
	if version == "" {
		if version, err = git(ctx, repo, "describe", "--tags", "--exact-match", "--match=v*", "HEAD"); err != nil {
			return "", "", fmt.Errorf("%w: HEAD has no tag: give -version", errUsage)
		}
	}
	tags, err := git(ctx, repo, "tag", "--list", "v*")
	if err != nil {
		return "", "", err
	}
	for tag := range strings.Lines(tags) {
		switch tag = strings.TrimSpace(tag); {
		case tag == version:
			return "refs/tags/" + tag, version, nil
		case semver.Compare(tag, version) > 0 && semver.MajorMinor(tag) == semver.MajorMinor(version):
			return "", "", fmt.Errorf("%s is released already: choose a later version than that", tag)
		}
	}
	changes, err := git(ctx, repo, "status", "--porcelain")
	if err != nil {
		return "", "", err
	}
	if changes != "" {
		return "", "", fmt.Errorf("the working tree has changes: commit them, or put them aside:\n%s", changes)
	}
	return "HEAD", version, nil
}

// commit writes the release as a commit beside the branch, and returns its name. It is
// the parent itself where nothing differs. The same parent gives the same commit.
func (r *release) commit(ctx context.Context) (string, error) {
	if len(r.changed) == 0 {
		return r.parent, nil
	}
	dir, err := os.MkdirTemp("", "steer-index-")
	if err != nil {
		return "", err
	}
	defer removeAll(dir)
	env := append(r.identity(), "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	if _, err := gitWith(ctx, r.repo, env, nil, "read-tree", r.parent); err != nil {
		return "", err
	}
	top, err := git(ctx, r.repo, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	for _, name := range r.changed {
		object, err := gitWith(ctx, r.repo, nil, r.files[name].data, "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := gitWith(ctx, top, env, nil, "update-index", "--add", "--cacheinfo", "100644,"+object+","+name); err != nil {
			return "", err
		}
	}
	tree, err := gitWith(ctx, r.repo, env, nil, "write-tree")
	if err != nil {
		return "", err
	}
	message := "release: " + r.version + "\n\nThe modules require one another at this version, without replace directives.\n"
	return gitWith(ctx, r.repo, env, []byte(message), "commit-tree", tree, "-p", r.parent)
}

// identity makes commits and tags those of the release, whoever's machine makes them.
func (r *release) identity() []string {
	var env []string
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+role+"_NAME=The Steer Authors", "GIT_"+role+"_EMAIL=release@steer.dev", "GIT_"+role+"_DATE="+r.time.Format(time.RFC3339))
	}
	return env
}

// tags are the names of the tags, in the order of the modules.
func (r *release) tags() []string {
	var tags []string
	for _, m := range r.modules {
		tags = append(tags, path.Join(m.folder, r.version))
	}
	return tags
}

// untag removes tags that were made.
func (r *release) untag(ctx context.Context, tags []string) error {
	if len(tags) == 0 {
		return nil
	}
	_, err := git(ctx, r.repo, append([]string{"tag", "--delete"}, tags...)...)
	return err
}

// tag makes the tags of all modules, or none.
func (r *release) tag(ctx context.Context, key string, out io.Writer) error {
	for _, tag := range r.tags() {
		if found, err := git(ctx, r.repo, "tag", "--list", tag); err != nil {
			return err
		} else if found != "" {
			return fmt.Errorf("the tag %s exists: nothing was tagged", tag)
		}
	}
	commit, err := r.commit(ctx)
	if err != nil {
		return err
	}
	args := []string{"tag", "--annotate"}
	if key != "" {
		if key, err = filepath.Abs(key); err != nil {
			return err
		}
		args = []string{"-c", "gpg.format=ssh", "-c", "user.signingKey=" + key, "tag", "--sign"}
	}
	for i, tag := range r.tags() {
		words := append(args[:len(args):len(args)], "--message", r.modules[i].Path+" "+r.version, tag, commit)
		if _, err := gitWith(ctx, r.repo, r.identity(), nil, words...); err != nil {
			return errors.Join(err, r.untag(context.WithoutCancel(ctx), r.tags()[:i]))
		}
	}
	fmt.Fprintf(out, "tagged %s; to publish: git push --atomic origin %s\n", commit, strings.Join(r.tags(), " "))
	return nil
}
