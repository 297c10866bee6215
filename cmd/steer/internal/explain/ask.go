// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// Question is one about an object.
type Question int

// The questions, as the commands answer them.
const (
	History Question = iota // with values, as with -p
	Why
	Tree
)

// Asker answers questions about the objects of a server for a screen. It is safe for
// concurrent use.
type Asker struct {
	// Config of the server, and of the user with whose rights it is asked.
	Config *rest.Config
	// Records is a directory of --record-dir; there need be none yet.
	Records string
	// Recent returns records that the directory may not have yet. nil: none.
	Recent func() []trace.Record
}

// Ask answers in words, with a line for each warning at the end.
func (a *Asker) Ask(ctx context.Context, q Question, object trace.Object) (string, error) {
	s, err := versions.Connect(ctx, a.Config)
	if err != nil {
		return "", err
	}
	rec := &records{known: map[trace.Object][]trace.Record{}}
	var warnings strings.Builder
	rec.warn = warnOnce(func(err error) { fmt.Fprintln(&warnings, "not known: "+chain.Plain(err.Error())) })
	if _, err := os.Stat(a.Records); !errors.Is(err, fs.ErrNotExist) {
		reader, err := recording.Open(a.Records)
		if err != nil {
			return "", err
		}
		rec.dirs = append(rec.dirs, reader)
	}
	if a.Recent != nil {
		rec.all = append(rec.all, a.Recent()...)
	}
	rec.none = len(rec.dirs) == 0 && len(rec.all) == 0
	facts := newFacts(ctx, s, rec, "no operator has left records yet")
	text := ""
	switch q {
	case History:
		var found chain.History
		found, err = facts.History(ctx, object, shownVersions)
		text = found.Text(true, false)
	case Why:
		var answer *chain.Answer
		if answer, err = facts.Why(ctx, object, ""); err == nil {
			text = answer.String()
		}
	case Tree:
		var tree *chain.Tree
		if tree, err = treeOf(ctx, facts, object); err == nil {
			text = tree.Text(false)
		}
	}
	if err != nil {
		return "", err
	}
	return text + warnings.String(), nil
}
