// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

// Report is what a command has done to a project.
type Report struct {
	// Created, Changed and Removed are paths relative to the project, sorted. Files
	// that were generated count.
	Created, Changed, Removed []string
	// Notes are what is left to do by hand, a sentence each.
	Notes []string
	// Restored is how many files were first restored to what they were before an
	// earlier command that was interrupted.
	Restored int
}
