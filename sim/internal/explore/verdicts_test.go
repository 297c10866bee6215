// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/sim/internal/explore"
)

func secretOf(app *corev1.ConfigMap, name string, data string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: name}, StringData: map[string]string{"data": data}}
}

// ensure creates a Secret that is not there, and reports whether it was.
func ensure(ctx context.Context, c client.Client, s *corev1.Secret) (there bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(s), &corev1.Secret{})
	if err == nil || client.IgnoreNotFound(err) != nil {
		return err == nil, err
	}
	return false, client.IgnoreAlreadyExists(c.Create(ctx, s))
}

// The operators of TestRunNamesWhatAnOperatorMustNotDo.
var (
	kept   sync.Map // what a package keeps from one start of its operator to the next
	locked sync.Mutex
)

func drawsAName(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	var list corev1.SecretList
	if err := c.List(ctx, &list); err != nil || len(list.Items) > 0 {
		return err
	}
	return c.Create(ctx, secretOf(app, fmt.Sprint("db-", rand.Uint32()), "1"))
}

func drawsAValue(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	_, err := ensure(ctx, c, secretOf(app, "db", fmt.Sprint(rand.Uint32())))
	return err
}

func remembersInItsPackage(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	if _, again := kept.LoadOrStore(app.Name, true); again {
		return nil
	}
	_, err := ensure(ctx, c, secretOf(app, "db", "1"))
	return err
}

func turnsAround(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	app = app.DeepCopy()
	app.Data = map[string]string{"times": app.Data["times"] + "I"}
	return c.Update(ctx, app)
}

// panicsAfterItsRestart meets what it has written before, in a goroutine of its own.
func panicsAfterItsRestart(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	there, err := ensure(ctx, c, secretOf(app, "db", "1"))
	if _, noticed := app.Annotations["noticed"]; there && !noticed {
		done := make(chan struct{})
		go func() { defer close(done); panic("db is there") }()
		<-done
	}
	if err != nil {
		return err
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"noticed":"yes"}}}`))
	return c.Patch(ctx, app.DeepCopy(), patch)
}

func locksAcrossCalls(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	locked.Lock()
	defer locked.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); locked.Lock(); locked.Unlock() }() //nolint:staticcheck // it waits
	_, err := ensure(ctx, c, secretOf(app, "db", "1"))
	return err
}

// ignoresItsContext tries a write until it is done, whatever its context says.
func ignoresItsContext(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	for {
		if _, err := ensure(context.WithoutCancel(ctx), c, secretOf(app, "db", "1")); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// waitsForASocket waits for an answer that does not come, in real time.
func waitsForASocket(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	if _, err := ensure(ctx, c, secretOf(app, "db", "1")); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return err
}

// sleepsForReal waits for a program, which knows nothing of virtual time.
func sleepsForReal(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	if _, err := ensure(ctx, c, secretOf(app, "db", "1")); err != nil {
		return err
	}
	return exec.CommandContext(ctx, "sleep", "60").Run()
}

// leavesAGoroutine has one that does not end with it.
func leavesAGoroutine(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	go func() { select {} }()
	_, err := ensure(ctx, c, secretOf(app, "db", "1"))
	return err
}

// TestRunNamesWhatAnOperatorMustNotDo gives each its verdict.
func TestRunNamesWhatAnOperatorMustNotDo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(context.Context, client.Client, *corev1.ConfigMap) error
		want []string // empty: nothing is found
	}{
		"draws a name":             {drawsAName, []string{"not deterministic", "Secret default/db-"}},
		"draws a value":            {drawsAValue, nil},
		"remembers in its package": {remembersInItsPackage, []string{"state of a package survives", "step "}},
		"turns around":             {turnsAround, []string{"never settles", "times update ConfigMap default/app", "configmap default/app: updated ConfigMap default/app"}},
		"panics after its restart": {panicsAfterItsRestart, []string{"the process died", "db is there", "crash_after_create_Secret_db"}},
		"ignores its context":      {ignoresItsContext, []string{"goroutines are left", "ignoresItsContext", "crash_before_create_Secret_db"}},
		"waits for a socket":       {waitsForASocket, []string{"stuck", "waitsForASocket", "IO wait"}},
		"sleeps for real":          {sleepsForReal, []string{"stuck", "sleepsForReal"}},
		"leaves a goroutine":       {leavesAGoroutine, []string{"goroutines are left", "leavesAGoroutine"}},
		"locks across calls":       {locksAcrossCalls, []string{"stuck", "locksAcrossCalls", "sync.Mutex.Lock"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := explore.Options{Orders: 2}
			if slices.Contains(test.want, "stuck") {
				o.Stuck = 2 * time.Second // it goes on at no time
			}
			r, err := explored(t, operated(test.do), o)
			var got strings.Builder
			for _, f := range r.Failures {
				got.WriteString(f.String())
			}
			if err != nil {
				got.WriteString(err.Error())
			}
			for _, want := range test.want {
				if !strings.Contains(got.String(), want) {
					t.Errorf("nothing says %q:\n%s", want, got.String())
				}
			}
			if len(test.want) == 0 && got.Len() > 0 {
				t.Errorf("found:\n%s", got.String())
			}
		})
	}
}
