// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import "github.com/steer-dev/steer/scaffold/project"

// Monitoring are the alerts and the board of an operator.
func Monitoring(name string) ([]Object, error) {
	b := &builder{project: &project.Project{Name: name}, settings: Settings{Namespace: name + "-system"}, account: manager}
	b.alerts()
	b.board()
	return b.objects, b.failed
}
