// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// logging is what the zap flags ask for. They are those of kubebuilder's
// manifests; the log itself is log/slog.
type logging struct {
	devel                           bool
	encoder, level, stack, timeForm string
	out                             io.Writer
}

// noStack is above all levels.
const noStack = slog.Level(127)

// check refuses values that no flag has.
func (l *logging) check() error {
	if l.encoder != "" && l.encoder != "json" && l.encoder != "console" {
		return fmt.Errorf("%w: --zap-encoder=%s: want json or console", ErrUsage, l.encoder)
	}
	if _, err := l.minimum(); err != nil {
		return err
	}
	if _, err := l.stackFrom(); err != nil {
		return err
	}
	if _, ok := timeForms()[strings.ToLower(l.timeForm)]; !ok {
		return fmt.Errorf("%w: --zap-time-encoding=%s: want epoch, millis, nano, iso8601, rfc3339 or rfc3339nano", ErrUsage, l.timeForm)
	}
	return nil
}

// minimum is the lowest level that is logged. A number n shows what is logged
// with V(n); V(4) is slog's debug level, and so is the word.
func (l *logging) minimum() (slog.Level, error) {
	switch strings.ToLower(l.level) {
	case "":
		if l.devel {
			return slog.LevelDebug, nil
		}
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	case "panic": // elsewhere a level above that of errors; nothing here logs at it
		return slog.LevelError + 4, nil
	}
	n, err := strconv.ParseUint(l.level, 10, 7)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: --zap-log-level=%s: want debug, info, error, panic or a number above 0", ErrUsage, l.level)
	}
	return -slog.Level(max(n, 4)), nil
}

// stackFrom is the level from which a line carries the stack of its caller.
func (l *logging) stackFrom() (slog.Level, error) {
	switch strings.ToLower(l.stack) {
	case "", "panic": // panics of reconcilers carry theirs anyway
		return noStack, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("%w: --zap-stacktrace-level=%s: want info, error or panic", ErrUsage, l.stack)
}

// timeForms are the values of --zap-time-encoding.
func timeForms() map[string]func(time.Time) slog.Value {
	text := func(layout string) func(time.Time) slog.Value {
		return func(t time.Time) slog.Value { return slog.StringValue(t.Format(layout)) }
	}
	return map[string]func(time.Time) slog.Value{
		"":            text("2006-01-02T15:04:05.000Z07:00"),
		"epoch":       func(t time.Time) slog.Value { return slog.Float64Value(float64(t.UnixNano()) / 1e9) },
		"millis":      func(t time.Time) slog.Value { return slog.Float64Value(float64(t.UnixNano()) / 1e6) },
		"nano":        func(t time.Time) slog.Value { return slog.Int64Value(t.UnixNano()) },
		"iso8601":     text("2006-01-02T15:04:05.000Z0700"),
		"rfc3339":     text(time.RFC3339),
		"rfc3339nano": text(time.RFC3339Nano),
	}
}

// logger makes the log. The settings have been checked.
func (l *logging) logger() *slog.Logger {
	level, _ := l.minimum()
	options := &slog.HandlerOptions{Level: level}
	form := timeForms()[strings.ToLower(l.timeForm)]
	console := l.encoder == "console" || l.encoder == "" && l.devel
	options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
			a.Value = form(a.Value.Time())
		}
		if a.Value.Kind() == slog.KindDuration && !console {
			a.Value = slog.Float64Value(a.Value.Duration().Seconds()) // as zap has it
		}
		return a
	}
	var handler slog.Handler
	if console {
		handler = slog.NewTextHandler(l.out, options)
	} else {
		handler = slog.NewJSONHandler(l.out, options)
	}
	if from, _ := l.stackFrom(); from != noStack {
		handler = stacks{handler, from}
	}
	return slog.New(handler)
}

// libraries is the lowest level of what libraries log (client-go, by klog): their
// debug lines are shown only at the given verbosity.
func (l *logging) libraries() slog.Level {
	level, _ := l.minimum()
	if _, err := strconv.Atoi(l.level); err == nil {
		return level
	}
	return max(level, slog.LevelInfo)
}

// quieter leaves out lines below a level.
type quieter struct {
	slog.Handler
	from slog.Level
}

// Enabled implements slog.Handler.
func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= q.from && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs), q.from}
}

// WithGroup implements slog.Handler.
func (q quieter) WithGroup(name string) slog.Handler {
	return quieter{q.Handler.WithGroup(name), q.from}
}

// stacks adds the stack of the caller to lines from a level on.
type stacks struct {
	slog.Handler
	from slog.Level
}

// Handle implements slog.Handler.
func (s stacks) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= s.from {
		r = r.Clone()
		r.AddAttrs(slog.String("stacktrace", string(debug.Stack())))
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (s stacks) WithAttrs(attrs []slog.Attr) slog.Handler {
	return stacks{s.Handler.WithAttrs(attrs), s.from}
}

// WithGroup implements slog.Handler.
func (s stacks) WithGroup(name string) slog.Handler {
	return stacks{s.Handler.WithGroup(name), s.from}
}
