// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package otel gives OpenTelemetry what the flight recorder notes: one span for
// every reconcile, and metrics. It is a module of its own, so that an operator
// without it does not link OpenTelemetry.
//
//	Setup: func(ctx context.Context, m *manager.Manager) error {
//		exporter, err := otel.New(m.Recorder(), otel.Options{TracerProvider: traces, MeterProvider: metrics})
//		if err != nil {
//			return err
//		}
//		return errors.Join(m.Add(exporter), controller.Add(m, &Reconciler{}))
//	}
//
// The providers, and where they send to, are the operator's own. Nothing is added
// to a reconcile: the exporter reads the recorder, and what it is too slow for is
// counted as missed. Contents of Secrets are not in the recorder and so not here.
package otel
