// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// downWindow is how long fewer replicas have to be called for until there are fewer.
const downWindow = 5 * time.Minute

// history is what an autoscaler has called for, and what it has changed.
type history struct {
	recommended []moment
	// added and removed are changes, as far as the policies of the autoscaler look back.
	added, removed []moment
}

// moment is a number of replicas at a time.
type moment struct {
	replicas int32
	at       time.Time
}

// begin notes the replicas that the target has when it is seen first.
func (h *history) begin(replicas int32, now time.Time) {
	if h.recommended == nil {
		h.recommended = []moment{{replicas, now}}
	}
}

// bounds are what an autoscaler may scale to.
type bounds struct{ least, most int32 }

func boundsOf(spec *autoscalingv2.HorizontalPodAutoscalerSpec) bounds {
	b := bounds{least: 1, most: spec.MaxReplicas}
	if spec.MinReplicas != nil {
		b.least = *spec.MinReplicas
	}
	return b
}

// decision is the number of replicas that a target is given, and why it is not the one that
// was called for. Empty texts say that it is.
type decision struct {
	replicas int32
	// stabilized and limited are reasons and messages of the conditions AbleToScale and
	// ScalingLimited.
	stabilized, limited cause
	isLimited           bool
}

type cause struct{ reason, message string }

// decide returns what is done about a recommendation, and remembers that.
func (h *history) decide(spec *autoscalingv2.HorizontalPodAutoscalerSpec, current, recommended int32, now time.Time) decision {
	rules := rulesOf(spec.Behavior)
	var up, down time.Duration
	if rules != nil {
		up, down = seconds(rules.ScaleUp.StabilizationWindowSeconds), seconds(rules.ScaleDown.StabilizationWindowSeconds)
	} else {
		down = downWindow
	}
	steady := h.stabilize(rules != nil, current, recommended, up, down, now)
	d := decision{stabilized: cause{"ReadyForNewScale", "recommended size matches current size"}}
	switch {
	case steady == recommended:
	case rules != nil && recommended >= current:
		d.stabilized = cause{"ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"}
	default:
		d.stabilized = cause{"ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"}
	}
	within := boundsOf(spec)
	var reason string
	if rules == nil {
		d.replicas, reason = limit(within, bounds{least: math.MinInt32, most: doubled(current)}, steady)
	} else {
		d.replicas, reason = h.limitByRules(rules, within, current, steady, now)
	}
	d.limited = limitedBy(reason)
	d.isLimited = d.replicas != steady
	return d
}

// stabilize returns the recommendation nearest to the current number of those in the windows.
func (h *history) stabilize(ruled bool, current, recommended int32, up, down time.Duration, now time.Time) int32 {
	lowest, highest := recommended, recommended
	kept := h.recommended[:0]
	for _, m := range h.recommended {
		age := now.Sub(m.at)
		if age < up {
			lowest = min(lowest, m.replicas)
		}
		// Without rules the window includes its end.
		if age < down || !ruled && age == down {
			highest = max(highest, m.replicas)
		}
		if age <= max(up, down) {
			kept = append(kept, m)
		}
	}
	h.recommended = append(kept, moment{recommended, now})
	if !ruled {
		return highest
	}
	return min(max(current, lowest), highest)
}

// doubled is how many replicas there may be at most after a look, without rules.
func doubled(current int32) int32 {
	const factor, least = 2, 4
	return max(int32(min(factor*int64(current), math.MaxInt32)), least)
}

// Reasons of the condition ScalingLimited.
const (
	withinRange = "DesiredWithinRange"
	tooMany     = "TooManyReplicas"
	tooFew      = "TooFewReplicas"
	tooFast     = "ScaleUpLimit"
	tooFastDown = "ScaleDownLimit"
)

// limitedBy returns the cause of a reason.
func limitedBy(reason string) cause {
	switch reason {
	case tooMany:
		return cause{reason, "the desired replica count is more than the maximum replica count"}
	case tooFew:
		return cause{reason, "the desired replica count is less than the minimum replica count"}
	case tooFast:
		return cause{reason, "the desired replica count is increasing faster than the maximum scale rate"}
	case tooFastDown:
		return cause{reason, "the desired replica count is decreasing faster than the maximum scale rate"}
	}
	return cause{withinRange, "the desired count is within the acceptable range"}
}

// limit keeps a number within the bounds of the autoscaler and those of the rate. It returns the
// reason.
func limit(within, rate bounds, wanted int32) (int32, string) {
	switch most := min(within.most, rate.most); {
	case wanted > most && within.most > rate.most:
		return most, tooFast
	case wanted > most:
		return most, tooMany
	}
	switch least := max(within.least, rate.least); {
	case wanted < least && within.least < rate.least:
		return least, tooFastDown
	case wanted < least:
		return least, tooFew
	}
	return wanted, withinRange
}

// limitByRules keeps a number within what the policies allow in their periods.
func (h *history) limitByRules(rules *autoscalingv2.HorizontalPodAutoscalerBehavior, within bounds, current, wanted int32, now time.Time) (int32, string) {
	switch {
	case wanted > current:
		rate := max(h.rate(rules.ScaleUp, current, 1, now), current)
		return limit(bounds{math.MinInt32, within.most}, bounds{math.MinInt32, rate}, wanted)
	case wanted < current:
		rate := min(h.rate(rules.ScaleDown, current, -1, now), current)
		return limit(bounds{within.least, math.MaxInt32}, bounds{rate, math.MaxInt32}, wanted)
	}
	return wanted, withinRange
}

// rate returns how far policies allow to go in a direction, 1 or -1.
func (h *history) rate(rules *autoscalingv2.HPAScalingRules, current int32, direction int, now time.Time) int32 {
	selected := autoscalingv2.MaxChangePolicySelect
	if rules.SelectPolicy != nil {
		selected = *rules.SelectPolicy
	}
	if selected == autoscalingv2.DisabledPolicySelect {
		return current
	}
	// The policy that goes farthest counts, or the one that goes least far.
	farthest := (selected == autoscalingv2.MaxChangePolicySelect) == (direction > 0)
	out := int32(math.MaxInt32)
	if farthest {
		out = math.MinInt32
	}
	for _, p := range rules.Policies {
		period := time.Duration(p.PeriodSeconds) * time.Second
		began := current - within(h.added, period, now) + within(h.removed, period, now)
		allowed := began + int32(direction)*p.Value // 1 or -1
		if p.Type == autoscalingv2.PercentScalingPolicy {
			change := float64(began) * (1 + float64(direction)*float64(p.Value)/100)
			if direction > 0 {
				change = math.Ceil(change) // one replica more at least
			}
			allowed = int32(max(min(change, math.MaxInt32), math.MinInt32))
		}
		if farthest {
			out = max(out, allowed)
		} else {
			out = min(out, allowed)
		}
	}
	return out
}

// within adds up the changes of a period.
func within(changes []moment, period time.Duration, now time.Time) int32 {
	total := int32(0)
	for _, m := range changes {
		if now.Sub(m.at) < period {
			total += m.replicas
		}
	}
	return total
}

// scaled remembers a change, for the policies of the autoscaler.
func (h *history) scaled(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, now time.Time) {
	rules := rulesOf(behavior)
	if rules == nil {
		return
	}
	longest := time.Duration(0)
	for _, r := range []*autoscalingv2.HPAScalingRules{rules.ScaleUp, rules.ScaleDown} {
		for _, p := range r.Policies {
			longest = max(longest, time.Duration(p.PeriodSeconds)*time.Second)
		}
	}
	changes, by := &h.added, to-from
	if to < from {
		changes, by = &h.removed, from-to
	}
	kept := (*changes)[:0]
	for _, m := range *changes {
		if now.Sub(m.at) <= longest {
			kept = append(kept, m)
		}
	}
	*changes = append(kept, moment{by, now})
}

// rulesOf returns the rules of an autoscaler with the default window, nil if it has none.
func rulesOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	if behavior == nil || behavior.ScaleUp == nil || behavior.ScaleDown == nil {
		return nil // the server has set both of a behavior
	}
	if behavior.ScaleDown.StabilizationWindowSeconds != nil {
		return behavior
	}
	out := behavior.DeepCopy()
	window := int32(downWindow / time.Second)
	out.ScaleDown.StabilizationWindowSeconds = &window
	return out
}

func seconds(n *int32) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}
