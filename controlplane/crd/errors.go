// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import "errors"

// errWebhookConversion is what a request that needs a conversion webhook fails
// with.
var errWebhookConversion = errors.New("conversion webhooks are not called yet")
