// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"

	"github.com/steer-dev/steer/scaffold/project"
)

// EditOptions are those of [Edit].
type EditOptions struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// MultiGroup gives every API group that is added folders of its own. What is there
	// stays where it is, and is found there.
	MultiGroup bool

	step func()
}

// Edit changes what a project was made with.
func Edit(_ context.Context, o EditOptions) (*project.Report, error) {
	return run(o.Dir, false, o.step, func(c *command) error {
		p, err := project.Read(c.dir)
		if err != nil {
			return err
		}
		if p.MultiGroup && !o.MultiGroup && len(p.Resources) > 0 {
			return project.Usagef("the project has kinds with folders by group: move their files, and their paths in PROJECT, and remove multigroup from it")
		}
		p.MultiGroup = o.MultiGroup
		if c.pending[project.File], err = p.Text(); err != nil {
			return err
		}
		return c.flush()
	})
}
