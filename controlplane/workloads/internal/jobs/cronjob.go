// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const cronJobController = step.KubeSystem + "cronjob-controller"

// schedule is one look at a CronJob.
type schedule struct {
	*turn
	key  storage.Key
	c    *batchv1.CronJob
	jobs []*batchv1.Job
	// completed records Events of Jobs that are no longer active, and missing of those that are
	// no longer there.
	completed, missing []string
}

// CronJob requests the next changes of the Jobs and the status of a CronJob.
func CronJob(common *cluster.Turn, key storage.Key) {
	t := &turn{common}
	self, c := t.Index.Objects[key], cluster.Stored[batchv1.CronJob](t.Turn, key)
	if self == nil || c == nil {
		return
	}
	s := &schedule{turn: t, key: key, c: c}
	for _, o := range t.Index.ChildrenOf(self.UID, cluster.Jobs) {
		if j := cluster.Stored[batchv1.Job](t.Turn, o.Key); j != nil {
			s.jobs = append(s.jobs, j)
		}
	}
	before := c.Status.DeepCopy()
	s.follow()
	if !self.Deleting {
		s.trim(batchv1.JobComplete, c.Spec.SuccessfulJobsHistoryLimit)
		s.trim(batchv1.JobFailed, c.Spec.FailedJobsHistoryLimit)
		if c.Spec.Suspend == nil || !*c.Spec.Suspend {
			s.start()
		}
	}
	if !equality.Semantic.DeepEqual(before, &c.Status) {
		t.Update(cronJobController, key, "status", c)
		for _, message := range s.completed {
			s.tell("SawCompletedJob", message)
		}
		for _, name := range s.missing {
			s.tell("MissingJob", "Active job went missing: "+name)
		}
	}
}

// follow updates the list of active Jobs.
func (s *schedule) follow() {
	status := &s.c.Status
	running, there := map[types.UID]bool{}, map[types.UID]bool{}
	for _, j := range s.jobs {
		there[j.UID] = true
		if finishedAt(j).IsZero() {
			running[j.UID] = true
			known := slices.ContainsFunc(status.Active, func(r corev1.ObjectReference) bool { return r.UID == j.UID })
			if at := j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]; !known && at != "" {
				status.Active = append(status.Active, corev1.ObjectReference{
					APIVersion: "batch/v1", Kind: "Job", Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: j.ResourceVersion,
				})
			}
			continue
		}
		if slices.ContainsFunc(status.Active, func(r corev1.ObjectReference) bool { return r.UID == j.UID }) {
			how := batchv1.JobFailed
			if jobCondition(j, batchv1.JobComplete) != nil {
				how = batchv1.JobComplete
			}
			s.completed = append(s.completed, fmt.Sprintf("Saw completed job: %s, condition: %v", j.Name, how))
		}
		if end := j.Status.CompletionTime; end != nil && (status.LastSuccessfulTime == nil || end.After(status.LastSuccessfulTime.Time)) {
			status.LastSuccessfulTime = end
		}
	}
	status.Active = slices.DeleteFunc(slices.Clone(status.Active), func(r corev1.ObjectReference) bool {
		if !there[r.UID] {
			s.missing = append(s.missing, r.Name)
		}
		return !running[r.UID]
	})
	if len(status.Active) == 0 {
		status.Active = nil
	}
}

// trim deletes the oldest finished Jobs beyond a limit.
func (s *schedule) trim(how batchv1.JobConditionType, limit *int32) {
	if limit == nil {
		return
	}
	var ended []*batchv1.Job
	for _, j := range s.jobs {
		if jobCondition(j, how) != nil && j.DeletionTimestamp == nil {
			ended = append(ended, j)
		}
	}
	slices.SortStableFunc(ended, func(a, b *batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, j := range ended[:max(0, len(ended)-int(*limit))] {
		s.end(j)
	}
}

func (s *schedule) end(j *batchv1.Job) {
	background := metav1.DeletePropagationBackground
	if o := s.Index.Objects[storage.Key{Bucket: cluster.Jobs, Name: j.Namespace + "/" + j.Name}]; o != nil {
		s.Delete(cronJobController, s.key, o, metav1.DeleteOptions{PropagationPolicy: &background})
		s.tell("SuccessfulDelete", "Deleted job "+j.Name)
	}
}

func (s *schedule) tell(reason, message string) {
	s.Tell(cluster.Note{User: cronJobController, About: s.key, UID: s.c.UID, Reason: reason, Message: message})
}

// start creates the Job that is due, and sets the timer for the next one.
func (s *schedule) start() {
	zone := time.UTC
	if s.c.Spec.TimeZone != nil {
		var err error
		if zone, err = time.LoadLocation(*s.c.Spec.TimeZone); err != nil {
			return
		}
	}
	times, err := cron.ParseStandard(s.c.Spec.Schedule)
	if err != nil {
		return
	}
	now := s.Now.In(zone)
	s.Later(s.key, times.Next(now))
	due, many := s.lastDue(times, now, zone)
	status := &s.c.Status
	switch deadline := s.c.Spec.StartingDeadlineSeconds; {
	case due.IsZero(), status.LastScheduleTime != nil && status.LastScheduleTime.Time.Equal(due):
		return
	case deadline != nil && due.Add(time.Duration(*deadline)*time.Second).Before(now):
		return
	}
	name := fmt.Sprintf("%s-%d", s.c.Name, due.Unix()/60)
	if s.Index.Objects[storage.Key{Bucket: cluster.Jobs, Name: s.c.Namespace + "/" + name}] != nil {
		at := metav1.NewTime(due)
		status.LastScheduleTime = &at
		return
	}
	switch s.c.Spec.ConcurrencyPolicy {
	case batchv1.ForbidConcurrent:
		if len(status.Active) > 0 {
			s.Note(cluster.Note{
				User: cronJobController, About: s.key, UID: s.c.UID, Reason: "JobAlreadyActive",
				Message: "Not starting job because prior execution is running and concurrency policy is Forbid",
			}, s.Now)
			return
		}
	case batchv1.ReplaceConcurrent:
		for _, j := range s.jobs {
			if finishedAt(j).IsZero() && j.DeletionTimestamp == nil {
				s.end(j)
			}
		}
		status.Active = nil
	}
	if many {
		s.Note(cluster.Note{
			User: cronJobController, About: s.key, UID: s.c.UID, Warning: true, Reason: "TooManyMissedTimes",
			Message: "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
		}, s.Now)
	}
	template := s.c.Spec.JobTemplate.DeepCopy()
	s.Create(cronJobController, s.key, cluster.Jobs, &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.c.Namespace, Labels: maps.Clone(template.Labels),
			Annotations:     cluster.With(template.Annotations, batchv1.CronJobScheduledTimestampAnnotation, due.Format(time.RFC3339)),
			OwnerReferences: []metav1.OwnerReference{cluster.Reference(batchv1.SchemeGroupVersion.WithKind("CronJob"), s.c.Name, s.c.UID)},
		},
		Spec: template.Spec,
	})
	s.tell("SuccessfulCreate", "Created job "+name)
}

// mostMissed is how many starts can be missed before an Event reports it.
const mostMissed = 100

// lastDue is the latest time at which a Job should have been started since the
// last one, the zero time if there is none, and whether many have been missed.
// Missed ones are not started later.
func (s *schedule) lastDue(times cron.Schedule, now time.Time, zone *time.Location) (due time.Time, many bool) {
	since := s.c.CreationTimestamp.Time
	if last := s.c.Status.LastScheduleTime; last != nil {
		since = last.Time
	}
	if deadline := s.c.Spec.StartingDeadlineSeconds; deadline != nil {
		if earliest := now.Add(-time.Duration(*deadline) * time.Second); earliest.After(since) {
			since = earliest
		}
	}
	first := times.Next(since.In(zone))
	if first.IsZero() || first.After(now) {
		return due, false
	}
	// After a long pause the times in between are not computed.
	if gap := times.Next(first).Sub(first); gap > 0 && now.Sub(first) >= mostMissed*gap {
		first = times.Next(now.Add(-2 * gap))
		if many = true; first.After(now) {
			return due, many
		}
	}
	for t := first; !t.IsZero() && !t.After(now); t = times.Next(t) {
		due = t
	}
	return due, many
}
