// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is a row of a table: a rule, a value that it checks, and the errors that follow,
// one to a line; "..." at the end of a line leaves out the rest of it.
type rule struct {
	name  string
	check func(f *Field)
	want  string
}

func runRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			var errs field.ErrorList
			at := At(field.NewPath("spec"), &errs)
			r.check(&at)
			compareErrors(t, r.want, errs)
		})
	}
}

func compareErrors(t *testing.T, want string, errs field.ErrorList) {
	t.Helper()
	var lines, wanted []string
	if want != "" {
		wanted = strings.Split(want, "\n")
	}
	for i, err := range errs {
		line := err.Error()
		if i < len(wanted) {
			if begin, cut := strings.CutSuffix(wanted[i], "..."); cut && strings.HasPrefix(line, begin) {
				line = wanted[i]
			}
		}
		lines = append(lines, line)
	}
	if diff := cmp.Diff(wanted, lines); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func quantityOf(text string) resource.Quantity { return resource.MustParse(text) }

func TestRulesOfNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	runRules(t, []rule{
		{"subdomain", func(f *Field) { f.Subdomain("name", "a-1.example.com") }, ""},
		{"subdomain with a capital", func(f *Field) { f.Subdomain("name", "A") }, `spec.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of...`},
		{"subdomain that is empty", func(f *Field) { f.Subdomain("name", "") }, `spec.name: Invalid value: "": a lowercase RFC 1123 subdomain...`},
		{"label", func(f *Field) { f.DNSLabel("name", "a-1") }, ""},
		{"label with a dot", func(f *Field) { f.DNSLabel("name", "a.b") }, `spec.name: Invalid value: "a.b": must not contain dots`},
		{"label of 64 bytes", func(f *Field) { f.DNSLabel("name", long) }, `spec.name: Invalid value: "` + long + `": must be no more than 63 characters`},
		{"namespace", func(f *Field) { f.Namespace("namespace", "default") }, ""},
		{"namespace with a dot", func(f *Field) { f.Namespace("namespace", "a.b") }, `spec.namespace: Invalid value: "a.b": must not contain dots`},
		{"path segment", func(f *Field) { f.PathSegment("name", "Any_thing:") }, ""},
		{"path segment that is empty", func(f *Field) { f.PathSegment("name", "") }, "spec.name: Required value"},
		{"path segment with a slash", func(f *Field) { f.PathSegment("name", "a/b") }, `spec.name: Invalid value: "a/b": may not contain '/'`},
		{"path segment of two dots", func(f *Field) { f.PathSegment("name", "..") }, `spec.name: Invalid value: "..": may not be '..'`},
		{"qualified name", func(f *Field) { f.Qualified("name", "example.com/Name_1") }, ""},
		{"qualified name without a name", func(f *Field) { f.Qualified("name", "example.com/") }, `spec.name: Invalid value: "example.com/": name part must be non-empty
spec.name: Invalid value: "example.com/": name part must consist of alphanumeric characters...`},
		{"label key", func(f *Field) { f.LabelKey("key", "example.com/app") }, ""},
		{"label key with a space", func(f *Field) { f.LabelKey("key", "a b") }, `spec.key: Invalid value: "a b": name part must consist of alphanumeric characters...`},
		{"labels", func(f *Field) { f.Labels("labels", map[string]string{"app": "a", "empty": ""}) }, ""},
		{"label with an invalid value", func(f *Field) { f.Labels("labels", map[string]string{"app": "-"}) }, `spec.labels: Invalid value: "-": a valid label must be an empty string or consist of...`},
		{"label with an invalid key", func(f *Field) { f.Labels("labels", map[string]string{"-": "a"}) }, `spec.labels: Invalid value: "-": name part must consist of...`},
		{"annotations", func(f *Field) { f.Annotations("annotations", map[string]string{"Example.com/a": "any text"}) }, ""},
		{"annotation with an invalid key", func(f *Field) { f.Annotations("annotations", map[string]string{"a b": ""}) }, `spec.annotations: Invalid value: "a b": name part must consist of...`},
		{"annotations of more than 256 KiB", func(f *Field) {
			f.Annotations("annotations", map[string]string{"a": strings.Repeat("x", 256<<10)})
		}, "spec.annotations: Too long: may not be more than 262144 bytes"},
	})
}

func TestRulesOfTemplateMetadata(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"labels and annotations", func(f *Field) {
			f.TemplateMetadata(&metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}})
		}, ""},
		{"labels and annotations that are invalid", func(f *Field) {
			f.TemplateMetadata(&metav1.ObjectMeta{Labels: map[string]string{"-": "b"}, Annotations: map[string]string{"-": "d"}})
		}, `spec.annotations: Invalid value: "-": name part...
spec.labels: Invalid value: "-": name part...`},
		{"a name", func(f *Field) { f.TemplateMetadata(&metav1.ObjectMeta{Name: "a"}) }, "spec.name: Forbidden: cannot be set"},
		{"finalizers and owners", func(f *Field) {
			f.TemplateMetadata(&metav1.ObjectMeta{Finalizers: []string{"a"}, OwnerReferences: []metav1.OwnerReference{{}}})
		}, "spec.ownerReferences: Forbidden: cannot be set\nspec.finalizers: Forbidden: cannot be set"},
	})
}

func TestRulesOfSelectors(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"nil", func(f *Field) { f.Selector("selector", nil) }, ""},
		{"empty", func(f *Field) { f.Selector("selector", &metav1.LabelSelector{}) }, ""},
		{"labels", func(f *Field) {
			f.Selector("selector", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
		}, ""},
		{"an invalid value of a label", func(f *Field) {
			f.Selector("selector", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "-"}})
		},
			`spec.selector.matchLabels: Invalid value: "-": a valid label...`},
		{"In without values", func(f *Field) {
			f.Selector("selector", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}})
		}, "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
	})
}

func TestRulesOfNumbers(t *testing.T) {
	t.Parallel()
	mode := func(n int32) *int32 { return &n }
	runRules(t, []rule{
		{"port", func(f *Field) { f.Port("port", 1); f.Port("port", 65535) }, ""},
		{"port 0", func(f *Field) { f.Port("port", 0) }, "spec.port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{"port 65536", func(f *Field) { f.Port("port", 65536) }, "spec.port: Invalid value: 65536: must be between 1 and 65535, inclusive"},
		{"port by number", func(f *Field) { f.PortOrName("port", intstr.FromInt32(80)) }, ""},
		{"port by number 0", func(f *Field) { f.PortOrName("port", intstr.FromInt32(0)) }, "spec.port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{"port by name", func(f *Field) { f.PortOrName("port", intstr.FromString("http")) }, ""},
		{"port by a name of digits", func(f *Field) { f.PortOrName("port", intstr.FromString("80")) }, `spec.port: Invalid value: "80": must contain at least one letter (a-z)`},
		{"between", func(f *Field) { f.Between("n", 1, 1, 5); f.Between("n", 5, 1, 5) }, ""},
		{"below the bounds", func(f *Field) { f.Between("n", 0, 1, 5) }, "spec.n: Invalid value: 0: must be between 1 and 5, inclusive"},
		{"above the bounds", func(f *Field) { f.Between("n", 6, 1, 5) }, "spec.n: Invalid value: 6: must be between 1 and 5, inclusive"},
		{"not negative", func(f *Field) { f.NotNegative("n", 0) }, ""},
		{"negative", func(f *Field) { f.NotNegative("n", -1) }, "spec.n: Invalid value: -1: must be greater than or equal to 0"},
		{"positive", func(f *Field) { f.Positive("n", 1) }, ""},
		{"not positive", func(f *Field) { f.Positive("n", 0) }, "spec.n: Invalid value: 0: must be greater than zero"},
		{"file mode", func(f *Field) { f.FileMode("mode", nil); f.FileMode("mode", mode(0)); f.FileMode("mode", mode(0o777)) }, ""},
		{"negative file mode", func(f *Field) { f.FileMode("mode", mode(-1)) }, "spec.mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive"},
		{"file mode with the sticky bit", func(f *Field) { f.FileMode("mode", mode(0o1000)) }, "spec.mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"},
		{"count", func(f *Field) { f.Amount("n", intstr.FromInt32(0)) }, ""},
		{"negative count", func(f *Field) { f.Amount("n", intstr.FromInt32(-1)) }, "spec.n: Invalid value: -1: must be greater than or equal to 0"},
		{"percentage", func(f *Field) { f.Amount("n", intstr.FromString("200%")) }, ""},
		{"percentage without its sign", func(f *Field) { f.Amount("n", intstr.FromString("20")) }, `spec.n: Invalid value: "20": a valid percent string must be...`},
		{"100%", func(f *Field) {
			f.AtMost100Percent("n", intstr.FromString("100%"))
			f.AtMost100Percent("n", intstr.FromInt32(101))
		}, ""},
		{"101%", func(f *Field) { f.AtMost100Percent("n", intstr.FromString("101%")) }, `spec.n: Invalid value: "101%": must not be greater than 100%`},
		{"percentage that is invalid", func(f *Field) { f.AtMost100Percent("n", intstr.FromString("x")) }, ""},
	})
}

func TestRulesOfPaths(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"inside", func(f *Field) { f.NoBacksteps("path", "/a/..b/c..") }, ""},
		{"backstep", func(f *Field) { f.NoBacksteps("path", "a/../../b") }, `spec.path: Invalid value: "a/../../b": must not contain '..'`},
		{"relative", func(f *Field) { f.Descending("path", "a/b") }, ""},
		{"absolute", func(f *Field) { f.Descending("path", "/a") }, `spec.path: Invalid value: "/a": must be a relative path`},
		{"relative backstep", func(f *Field) { f.Descending("path", "..") }, `spec.path: Invalid value: "..": must not contain '..'`},
		{"unreserved", func(f *Field) { f.Unreserved("path", "a") }, ""},
		{"reserved", func(f *Field) { f.Unreserved("path", "..a") }, `spec.path: Invalid value: "..a": must not start with '..'`},
		{"unreserved that leaves", func(f *Field) { f.Unreserved("path", "../a") }, `spec.path: Invalid value: "../a": must not contain '..'`},
	})
}

func TestRulesOfAddresses(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"address", func(f *Field) { f.IP("ip", "10.0.0.1"); f.IP("ip", "fd00::1") }, ""},
		{"address that is none", func(f *Field) { f.IP("ip", "10.0.0.256") }, `spec.ip: Invalid value: "10.0.0.256": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"range", func(f *Field) { f.CIDR("cidr", "10.0.0.0/8"); f.CIDR("cidr", "fd00::/64") }, ""},
		{"range without a prefix", func(f *Field) { f.CIDR("cidr", "10.0.0.0") }, `spec.cidr: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
	})
}

func TestRulesOfChanges(t *testing.T) {
	t.Parallel()
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	runRules(t, []rule{
		{"unchanged", func(f *Field) { f.Unchanged("a", ref("a"), ref("a")) }, ""},
		{"empty and nil are the same", func(f *Field) { f.Unchanged("a", []string{}, []string(nil)) }, ""},
		{"changed text", func(f *Field) { f.Unchanged("a", "b", "a") }, `spec.a: Invalid value: "b": field is immutable`},
		{"changed struct, with the names of Go", func(f *Field) { f.Unchanged("a", ref("b"), ref("a")) }, `spec.a: Invalid value: {"Name":"b"}: field is immutable`},
		{"changed to nothing", func(f *Field) { f.Unchanged("a", nil, ref("a")) }, "spec.a: Invalid value: null: field is immutable"},
	})
}

func TestRulesOfQuantities(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"amount", func(f *Field) { f.Quantity("cpu", "cpu", quantityOf("100m")) }, ""},
		{"negative amount", func(f *Field) { f.Quantity("cpu", "cpu", quantityOf("-1")) }, `spec.cpu: Invalid value: "-1": must be greater than or equal to 0`},
		{"half a Pod", func(f *Field) { f.Quantity("pods", "pods", quantityOf("500m")) }, `spec.pods: Invalid value: "500m": must be an integer`},
		{"half a device", func(f *Field) { f.Quantity("n", "example.com/gpu", quantityOf("500m")) }, `spec.n: Invalid value: "500m": must be an integer`},
		{"whole device", func(f *Field) { f.Quantity("n", "example.com/gpu", quantityOf("2")) }, ""},
		{"half of a native resource", func(f *Field) { f.Quantity("n", "kubernetes.io/batteries", quantityOf("500m")) }, ""},
		{"large pages", func(f *Field) { f.HugePages("hugepages-2Mi", quantityOf("4Mi")) }, ""},
		{"half a large page", func(f *Field) { f.HugePages("hugepages-2Mi", quantityOf("3Mi")) }, `spec: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`},
		{"large pages of no size", func(f *Field) { f.HugePages("hugepages-", quantityOf("1")) }, `spec: Invalid value: "1": 1 is not positive integer multiple of hugepages-`},
		{"large pages of size 0", func(f *Field) { f.HugePages("hugepages-0", quantityOf("1")) }, `spec: Invalid value: "1": 1 is not positive integer multiple of hugepages-0`},
		{"large pages of a part of a byte", func(f *Field) { f.HugePages("hugepages-1500m", quantityOf("3")) }, `spec: Invalid value: "3": 3 is not positive integer multiple of hugepages-1500m`},
		{"memory that is not of large pages", func(f *Field) { f.HugePages("memory", quantityOf("3")) }, ""},
		{"no amount", func(f *Field) { f.QuantityNotNegative("n", quantityOf("0")) }, ""},
		{"negative amount", func(f *Field) { f.QuantityNotNegative("n", quantityOf("-1")) }, `spec.n: Invalid value: "-1": must be greater than or equal to 0`},
	})
}

func TestResourceNamesHaveKinds(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name                                  string
		native, extended, hugePages, standard bool
	}{
		{"cpu", true, false, false, true},
		{"pods", true, false, false, true},
		{"services.nodeports", true, false, false, true},
		{"moons", true, false, false, false},
		{"hugepages-2Mi", true, false, true, true},
		{"requests.hugepages-2Mi", true, false, false, true},
		{"kubernetes.io/batteries", true, false, false, false},
		{"example.com/gpu", false, true, false, false},
		{"requests.example.com/gpu", false, false, false, false},
		{"example.com/not a name", false, false, false, false},
	} {
		if IsNativeResource(r.name) != r.native || IsExtendedResource(r.name) != r.extended || IsHugePages(r.name) != r.hugePages || IsStandardResource(r.name) != r.standard {
			t.Errorf("%s: native %v, extended %v, large pages %v, standard %v", r.name, IsNativeResource(r.name), IsExtendedResource(r.name), IsHugePages(r.name), IsStandardResource(r.name))
		}
	}
}

func TestRulesOfFinalizers(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"some", func(f *Field) {
			f.Finalizers("finalizers", []string{"kubernetes", "mine", "orphan", "foregroundDeletion", "example.com/mine"})
		}, `spec.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified`},
	})
}

func TestRulesOfValues(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"supported", func(f *Field) { Supported(f, "policy", "Never", "Always", "Never") }, ""},
		{"not supported", func(f *Field) { Supported(f, "policy", "", "Always", "Never") }, `spec.policy: Unsupported value: "": supported values: "Always", "Never"`},
		{"required", func(f *Field) { RequiredOf(f, "policy", "Never", "Always", "Never") }, ""},
		{"required and empty", func(f *Field) { RequiredOf(f, "policy", "", "Always") }, "spec.policy: Required value"},
		{"required and not supported", func(f *Field) { RequiredOf(f, "policy", "Moon", "Always") }, `spec.policy: Unsupported value: "Moon": supported values: "Always"`},
	})
}

func TestRulesReportWhetherTheyHold(t *testing.T) {
	t.Parallel()
	var errs field.ErrorList
	f := Root(&errs)
	for name, got := range map[string][2]bool{
		"NonEmpty":              {f.NonEmpty("a", "x"), true},
		"NonEmpty of nothing":   {f.NonEmpty("a", ""), false},
		"Supported":             {Supported(&f, "a", "x", "x"), true},
		"Supported of others":   {Supported(&f, "a", "y", "x"), false},
		"RequiredOf":            {RequiredOf(&f, "a", "x", "x"), true},
		"RequiredOf of nothing": {RequiredOf(&f, "a", "", "x"), false},
		"RequiredOf of others":  {RequiredOf(&f, "a", "y", "x"), false},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %v", name, got[0])
		}
	}
	for text, want := range map[string]int{"50%": 50, "x": -1} {
		if n, ok := Percentage(intstr.FromString(text)); ok != (want >= 0) || ok && n != want {
			t.Errorf("Percentage(%s) is %d, %v", text, n, ok)
		}
	}
	if _, ok := Percentage(intstr.FromInt32(50)); ok {
		t.Error("a count is a percentage")
	}
}

func TestRenamedLabelsNameTheirSuccessor(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
		"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
		"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
		"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
		"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
		"app.kubernetes.io/created-by":                  "deprecated since v1.9",
		"scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
		"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
		string(corev1.LabelHostname):                    "",
	} {
		if text, old := RenamedLabel(key); text != want || old != (want != "") {
			t.Errorf("%s: %q, %v", key, text, old)
		}
	}
}
