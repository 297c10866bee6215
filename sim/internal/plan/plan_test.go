// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"strings"
	"testing"
)

func secret(name string) Write {
	return Write{Verb: "create", Kind: "Secret", Namespace: "default", Name: name, Nth: 1}
}

func status(nth int) Write {
	return Write{
		Verb: "patch", Group: "example.com", Kind: "Database", Namespace: "default", Name: "db", SubResource: "status", Nth: nth,
	}
}

func TestPlanSaysWhatHappensInNameAndWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan  Plan
		name  string
		words string
	}{
		{Plan{}, "reference", ""},
		{Plan{Seed: 7}, "order_7", ""},
		{
			Plan{Faults: []Fault{{Type: CrashAfter, At: secret("db-ssl")}}},
			"crash_after_create_Secret_db-ssl", "crash after create Secret default/db-ssl",
		},
		{
			Plan{Seed: 3, Faults: []Fault{{Type: CrashDuring, At: status(2)}, {Type: CrashAfter, Restart: 1}}},
			"crash_during_patch_Database.example.com_db_status#2_then_crash_after_restart#1_in_order_3",
			"crash during patch Database.example.com/status default/db, the 2nd time; crash after the 1st write after the restart",
		},
		{
			Plan{Faults: []Fault{{Type: TimeoutAfter, At: Write{Verb: Outside, Name: "create volume v_1", Nth: 1}}}},
			"504_after_outside_create,volume,v=5F1", "504 after outside create volume v_1",
		},
		{
			Plan{Faults: []Fault{{Type: Conflict, At: Write{Verb: "deletecollection", Kind: "Pod", Namespace: "prod", Nth: 1}}}},
			"409_on_deletecollection_Pod_~all@prod", "409 on deletecollection Pod prod/",
		},
		{
			Plan{Faults: []Fault{{Type: InternalError, At: Write{Actor: "user", Verb: "apply", Kind: "Secret", Name: "a:b", Nth: 1}}}},
			"500_on_user~apply_Secret_a=3Ab", "500 on user: apply Secret a:b",
		},
	} {
		if err := c.plan.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := c.plan.Name(); got != c.name {
			t.Errorf("name %s, want %s", got, c.name)
		}
		var words []string
		for _, f := range c.plan.Faults {
			words = append(words, f.String())
		}
		if got := strings.Join(words, "; "); got != c.words {
			t.Errorf("words %q, want %q", got, c.words)
		}
	}
}

func TestPlanRefusesWhatCannotHappen(t *testing.T) {
	t.Parallel()
	at := func(change func(*Write)) Plan {
		w := secret("a")
		change(&w)
		return Plan{Faults: []Fault{{Type: CrashAfter, At: w}}}
	}
	for want, p := range map[string]Plan{
		"the verb \"get\" is none of":      at(func(w *Write) { w.Verb = "get" }),
		"names no kind":                    at(func(w *Write) { w.Kind = "" }),
		"names no object":                  at(func(w *Write) { w.Name = "" }),
		"has no name":                      at(func(w *Write) { w.Verb = "deletecollection" }),
		"a name and nothing else":          at(func(w *Write) { w.Verb = Outside }),
		"count from 1":                     at(func(w *Write) { w.Nth = 0 }),
		"1025 bytes":                       at(func(w *Write) { w.Name = strings.Repeat("a", 1025) }),
		"the fault has no type":            {Faults: []Fault{{At: secret("a")}}},
		"writes of a restart count from 1": {Faults: []Fault{{Type: CrashAfter, Restart: -1}}},
		"not both":                         {Faults: []Fault{{Type: CrashAfter, Restart: 1, At: secret("a")}}},
		"fault 2: the fault is at a write of a restart": {Faults: []Fault{{Type: Conflict, At: secret("a")}, {Type: CrashAfter, Restart: 1}}},
		"two faults are at the same write":              {Faults: []Fault{{Type: Conflict, At: secret("a")}, {Type: CrashAfter, At: secret("a")}}},
		"65 faults":                                     {Faults: make([]Fault, 65)},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestCounterNumbersTheSameWrites(t *testing.T) {
	t.Parallel()
	var c Counter
	for _, want := range []int{1, 2, 3} {
		if got := c.Next(status(0)); got.Nth != want || got.Actor != Operator {
			t.Errorf("%+v, want Nth %d", got, want)
		}
	}
	other := status(0)
	other.SubResource = ""
	if got := c.Next(other); got.Nth != 1 {
		t.Errorf("another write is number %d", got.Nth)
	}
}

func TestNamesAreTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	var n Names
	const uid = "0f5b1c9e-23a4-4d6e-8a11-5a1f2b3c4d5e"
	for _, c := range [][2]string{
		{n.Generated("db-", "db-x7k2f"), "db-~1"},
		{n.Generated("db-", "db-zzzzz"), "db-~2"},
		{n.Generated("db-", "db-x7k2f"), "db-~1"},
		{n.Canonical("db-x7k2f"), "db-~1"},
		{n.Canonical("db-x7k2f-tls"), "db-~1-tls"},
		{n.Canonical("db-x7k2fa"), "db-x7k2fa"},
		{n.Canonical("db"), "db"},
		{n.Canonical("claim-" + uid), "claim-~uid1"},
		{n.Generated(uid+"-", uid+"-abcde"), "~uid1-~1"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s, want %s", c[0], c[1])
		}
	}
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_.@#~=,-]+$`)

func FuzzNamesOfPlansAreDistinct(f *testing.F) {
	f.Add("a", "create", "", "Secret", "default", "x", "", 1, "a", "patch", "g.io", "Db", "ns", "x_y", "status", 2)
	f.Add("", "create", "", "Secret", "", "x@y", "", 1, "", "create", "", "Secret", "y", "x", "", 1)
	f.Add("", "create", "b", "A", "", "x", "", 1, "", "create", "", "A.b", "", "x", "", 1)
	f.Add("", "delete", "", "A", "", "x", "y", 1, "", "delete", "", "A", "", "x_y", "", 1)
	f.Fuzz(func(t *testing.T, a1, v1, g1, k1, ns1, n1, s1 string, i1 int, a2, v2, g2, k2, ns2, n2, s2 string, i2 int) {
		w := [2]Write{{a1, v1, g1, k1, ns1, n1, s1, i1}, {a2, v2, g2, k2, ns2, n2, s2, i2}}
		var names [2]string
		for i := range w {
			// Kinds have no dot, names no "~", and the namespace default is left out.
			w[i].Actor, w[i].Kind = strings.ReplaceAll(w[i].Actor, "~", ""), strings.ReplaceAll(w[i].Kind, ".", "")
			w[i].Name = strings.ReplaceAll(w[i].Name, "~", "")
			w[i] = w[i].normal()
			if w[i].Namespace == "default" {
				w[i].Namespace = ""
			}
			p := Plan{Faults: []Fault{{Type: CrashAfter, At: w[i]}}}
			if p.Validate() != nil {
				return
			}
			names[i] = p.Name()
			if !plain.MatchString(names[i]) || len(names[i]) > maxName {
				t.Fatalf("%q is not the name of a subtest and of a file", names[i])
			}
		}
		if (names[0] == names[1]) != (w[0] == w[1]) {
			t.Fatalf("%+v and %+v have the names %q and %q", w[0], w[1], names[0], names[1])
		}
	})
}
