// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crontab is an operator: a CronTab starts a Job at each of its due
// times, keeps a few finished ones, and reports what runs.
package crontab
