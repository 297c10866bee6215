// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/manager/election"
)

// Lease is the leader lease of an operator. This process can hold it while it starts and
// stops the operator, which then needs no leader election of its own.
type Lease struct {
	// Config of a user who may read and write the lease.
	Config *rest.Config
	// Operator is the name of the operator and of its lease, in Namespace.
	Operator, Namespace string
	// Identity of this process in the lease.
	Identity string
}

// HeldError says that another process holds a lease.
type HeldError struct {
	Lease, Holder     string
	Acquired, Renewed time.Time
	// Duration for which the holder may go on after it renewed the lease.
	Duration time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("the lease %s is held by %s since %s, and was renewed at %s: stop that operator, or take the lease over with --takeover",
		e.Lease, e.Holder, e.Acquired.Format(time.RFC3339), e.Renewed.Format(time.RFC3339))
}

// Check returns a [HeldError] if another process holds the lease.
func (l *Lease) Check(ctx context.Context) error {
	_, _, err := l.read(ctx)
	return err
}

// Take makes this process the holder. With takeover also what another one holds is taken;
// that one may go on for the returned time until it notices.
func (l *Lease) Take(ctx context.Context, takeover bool) (former time.Duration, err error) {
	c, lease, err := l.read(ctx)
	var held *HeldError
	if errors.As(err, &held) && takeover {
		former, err = max(0, time.Until(held.Renewed.Add(held.Duration))), nil
	}
	if err != nil {
		return 0, err
	}
	timing, err := election.Timing{}.WithDefaults()
	if err != nil {
		return 0, err
	}
	now, seconds, transitions := metav1.NowMicro(), int32(timing.Lease/time.Second), int32(0)
	if lease.Spec.LeaseTransitions != nil {
		transitions = *lease.Spec.LeaseTransitions + 1
	}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &l.Identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: &transitions,
	}
	if lease.ResourceVersion == "" {
		err = c.Create(ctx, lease)
	} else {
		err = c.Update(ctx, lease)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("take the lease %s/%s: another process was faster; try again", l.Namespace, l.Operator)
	}
	return former, err
}

// read reads the lease, and returns a new one where there is none.
func (l *Lease) read(ctx context.Context) (client.Client, *coordinationv1.Lease, error) {
	scheme, err := client.NewScheme(coordinationv1.AddToScheme)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(l.Config, client.Options{Scheme: scheme, FieldOwner: "steer-dev"})
	if err != nil {
		return nil, nil, err
	}
	lease := &coordinationv1.Lease{}
	err = c.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: l.Operator}, lease)
	if apierrors.IsNotFound(err) {
		return c, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Operator}}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return c, lease, l.held(lease)
}

// held returns a [HeldError] for a lease of another process.
func (l *Lease) held(lease *coordinationv1.Lease) error {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == l.Identity || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return nil
	}
	held := &HeldError{
		Lease: l.Namespace + "/" + l.Operator, Holder: *spec.HolderIdentity,
		Renewed: spec.RenewTime.Time, Duration: time.Duration(*spec.LeaseDurationSeconds) * time.Second,
	}
	if spec.AcquireTime != nil {
		held.Acquired = spec.AcquireTime.Time
	}
	if !time.Now().Before(held.Renewed.Add(held.Duration)) {
		return nil
	}
	return held
}

// Hold renews the lease that was taken while run runs, and gives it up when run has
// returned. When the lease is lost, the context of run ends, and the error wraps
// [manager.ErrLostLease].
func (l *Lease) Hold(ctx context.Context, run func(ctx context.Context) error) error {
	scheme, err := client.NewScheme()
	if err != nil {
		return err
	}
	m, err := manager.New(l.Config, manager.Options{
		Name: l.Operator, Instance: l.Identity, Scheme: scheme, Log: slog.New(slog.DiscardHandler), StopGrace: -1,
		Election: manager.Election{Enabled: true, Lease: l.Operator, Namespace: l.Namespace},
	})
	if err != nil {
		return err
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := run(ctx)
		if ctx.Err() == nil {
			done() // the manager ends with run
		}
		return err
	}))
	if err != nil {
		return err
	}
	return m.Start(ctx)
}
