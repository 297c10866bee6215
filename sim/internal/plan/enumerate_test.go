// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
)

func reference() []Seen {
	user := secret("config")
	user.Actor = "user"
	return []Seen{
		{user, true},
		{status(1), true},
		{secret("db"), true},
		{secret("db-ssl"), true},
		{Write{Verb: Outside, Name: "create volume", Nth: 1}, true},
		{status(2), false},
	}
}

func TestPlansOfAReferenceComeMostTellingFirst(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range Enumerate(reference()) {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		names = append(names, p.Name())
	}
	want := strings.Fields(`
crash_after_create_Secret_db
crash_after_create_Secret_db-ssl
crash_after_outside_create,volume
crash_after_patch_Database.example.com_db_status
500_on_create_Secret_db
500_on_create_Secret_db-ssl
500_on_outside_create,volume
500_on_patch_Database.example.com_db_status
504_after_create_Secret_db
504_after_create_Secret_db-ssl
504_after_outside_create,volume
504_after_patch_Database.example.com_db_status
crash_before_create_Secret_db
crash_before_create_Secret_db-ssl
crash_before_outside_create,volume
crash_before_patch_Database.example.com_db_status
crash_during_create_Secret_db
crash_during_create_Secret_db-ssl
crash_during_outside_create,volume
crash_during_patch_Database.example.com_db_status
409_on_create_Secret_db
409_on_create_Secret_db-ssl
409_on_patch_Database.example.com_db_status
429_on_create_Secret_db
429_on_create_Secret_db-ssl
429_on_patch_Database.example.com_db_status
504_before_create_Secret_db
504_before_create_Secret_db-ssl
504_before_patch_Database.example.com_db_status
crash_after_create_Secret_db_then_crash_after_restart#1
crash_after_create_Secret_db-ssl_then_crash_after_restart#1
crash_after_outside_create,volume_then_crash_after_restart#1
crash_after_patch_Database.example.com_db_status_then_crash_after_restart#1
500_on_patch_Database.example.com_db_status#2
504_after_patch_Database.example.com_db_status#2
409_on_patch_Database.example.com_db_status#2
429_on_patch_Database.example.com_db_status#2
504_before_patch_Database.example.com_db_status#2
`)
	if !slices.Equal(names, want) {
		t.Errorf("got\n%s", strings.Join(names, "\n"))
	}
}

func TestPlansOfAReferenceAreDistinct(t *testing.T) {
	t.Parallel()
	seen := slices.Concat(reference(), reference()) // repeated entries add nothing
	names := map[string]bool{}
	all := append(Orders(20), Enumerate(seen)...)
	for _, p := range all {
		names[p.Name()] = true
	}
	if len(names) != len(all) || len(all) != 20+len(Enumerate(reference())) {
		t.Errorf("%d plans, %d names", len(all), len(names))
	}
}
