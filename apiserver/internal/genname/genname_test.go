// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package genname_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/genname"
	"github.com/steer-dev/steer/apiserver/resource"
)

func suffix(length int) string { return strings.Repeat("x", length) }

func TestSetNamesObjectsThatWantIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, generateName, want string }{
		{"", "web-", "web-xxxxx"},
		{"fixed", "web-", "fixed"},
		{"", "", ""},
		{"", strings.Repeat("a", 70), strings.Repeat("a", 58) + "xxxxx"},
	} {
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: test.name, GenerateName: test.generateName}}
		genname.Set(obj, suffix)
		if obj.Name != test.want {
			t.Errorf("%q, %q: got %q, want %q", test.name, test.generateName, obj.Name, test.want)
		}
	}
}

func TestTryAttemptsEightGeneratedNames(t *testing.T) {
	t.Parallel()
	refused := errors.New("taken")
	for _, test := range []struct {
		name            string
		taken, attempts int
	}{
		{"", 0, 1}, {"", 3, 4}, {"", 100, 8}, {"fixed", 100, 1},
	} {
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: test.name, GenerateName: "web-"}}
		attempts := 0
		err := genname.Try(obj, func(candidate resource.Object) (bool, error) {
			attempts++
			if candidate.GetName() != test.name {
				t.Errorf("attempt %d is named %q by an earlier one", attempts, candidate.GetName())
			}
			genname.Set(candidate, suffix)
			if attempts <= test.taken {
				return true, refused
			}
			return false, nil
		})
		if attempts != test.attempts || errors.Is(err, refused) != (test.taken >= attempts) {
			t.Errorf("%+v: %d attempts, %v", test, attempts, err)
		}
	}
}
