// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
)

// Outcome scripts the Pods that it selects.
type Outcome struct {
	// Namespace of the Pods. Empty: every namespace.
	Namespace string
	// Selector of the labels of the Pods, such as "app=web,track!=canary".
	// Empty: every Pod.
	Selector string
	// Fate of the Pods. Empty: [Ready].
	Fate Fate
	// After is the time from the start of a Pod until the fate takes effect. Default: at once.
	After time.Duration
	// ExitCode of the containers of Pods that fail or crash, 1 to 255. Default: 1.
	ExitCode int32
}

// Fate is how a Pod ends up.
type Fate string

// The fates.
const (
	// Ready Pods run and are ready.
	Ready Fate = "ready"
	// CrashLoop Pods start, fail and are restarted, at ever longer intervals;
	// those that must not be restarted fail.
	CrashLoop Fate = "crash-loop"
	// Never Pods run but are never ready. Once a client has written their status,
	// the simulation does not.
	Never Fate = "never"
	// Unschedulable Pods fit on no node.
	Unschedulable Fate = "unschedulable"
	// Complete Pods run and then succeed, unless they are always restarted.
	Complete Fate = "complete"
	// Fail Pods run and then fail, unless they are restarted on failure.
	Fail Fate = "fail"
)

// outcome is an [Outcome] with its selector parsed.
type outcome struct {
	Outcome
	selector labels.Selector
}

// parse checks an outcome and fills in its defaults.
func (o Outcome) parse() (outcome, error) {
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return outcome{}, fmt.Errorf("selector %q: %w", o.Selector, err)
	}
	switch o.Fate {
	case "":
		o.Fate = Ready
	case Ready, CrashLoop, Never, Unschedulable, Complete, Fail:
	default:
		return outcome{}, fmt.Errorf("unknown fate %q: choose %s, %s, %s, %s, %s or %s",
			o.Fate, Ready, CrashLoop, Never, Unschedulable, Complete, Fail)
	}
	if o.After < 0 {
		return outcome{}, fmt.Errorf("it comes %s before the start", -o.After)
	}
	fails := o.Fate == Fail || o.Fate == CrashLoop
	if o.ExitCode < 0 || o.ExitCode > 255 || o.ExitCode > 0 && !fails {
		return outcome{}, fmt.Errorf("exit code %d of fate %q: choose one from 1 to 255 for %s or %s", o.ExitCode, o.Fate, Fail, CrashLoop)
	}
	if o.ExitCode == 0 && fails {
		o.ExitCode = 1
	}
	return outcome{Outcome: o, selector: selector}, nil
}

// ParseOutcome parses the text form of an outcome: a selector of labels, a
// namespace behind @ to restrict it to one, and after a colon the fate, the exit
// code and the delay. Without a selector it applies to every Pod.
//
//	app=web: ready after 2s
//	app=web,track!=canary @shop: crash loop
//	job-name=import: fail with 42 after 5s
//	: never
func ParseOutcome(text string) (Outcome, error) {
	explain := func(format string, args ...any) (Outcome, error) {
		return Outcome{}, fmt.Errorf("outcome %q: "+format+"; write it as SELECTOR [@NAMESPACE]: FATE [with EXITCODE] [after DURATION], such as \"app=web: ready after 2s\"",
			append([]any{text}, args...)...)
	}
	whom, what, found := strings.Cut(text, ":")
	if !found {
		return explain("there is no colon between the Pods and their fate")
	}
	selector, namespace, hasNamespace := strings.Cut(whom, "@")
	o := Outcome{Selector: strings.TrimSpace(selector), Namespace: strings.TrimSpace(namespace)}
	if hasNamespace {
		if problems := validation.ValidateNamespaceName(o.Namespace, false); len(problems) > 0 {
			return explain("%q is no namespace: %s", o.Namespace, problems[0])
		}
	}
	fate, delay, delayed := strings.Cut(what, " after ")
	fate, code, coded := strings.Cut(fate, " with ")
	o.Fate = Fate(strings.Join(strings.Fields(fate), "-"))
	if o.Fate == "" {
		return explain("the fate is missing")
	}
	if coded {
		n, err := strconv.ParseInt(strings.TrimSpace(code), 10, 32)
		if err != nil || n == 0 {
			return explain("%q is no exit code of a failure", strings.TrimSpace(code))
		}
		o.ExitCode = int32(n)
	}
	if delayed {
		var err error
		if o.After, err = time.ParseDuration(strings.TrimSpace(delay)); err != nil {
			return explain("%q is no duration", strings.TrimSpace(delay))
		}
	}
	if _, err := o.parse(); err != nil {
		return explain("%w", err)
	}
	return o, nil
}
