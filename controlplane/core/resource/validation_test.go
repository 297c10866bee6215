// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
)

func slicesOfDevices() kindtest.Kind {
	return kindtest.Kind{Resources: Resources(), APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice", Valid: `
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: pool/a, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: a}, example.com/count: {int: 1}, ok: {bool: true}, v: {version: 1.2.3}}
    allowMultipleAllocations: true
    capacity: {memory: {value: 10, requestPolicy: {default: 2, validValues: [1, 2]}}}
    consumesCounters: [{counterSet: set, counters: {slots: {value: 1}}}]
    taints: [{key: example.com/broken, value: a, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}]
    bindingConditions: [ready]
    bindingFailureConditions: [failed]`}
}

func claimsOfDevices() kindtest.Kind {
	return kindtest.Kind{Resources: Resources(), APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim", Valid: `
metadata: {name: c, namespace: default}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1, selectors: [{cel: {expression: device.driver == "a"}}], tolerations: [{key: a, operator: Exists, effect: NoExecute}]}
    - name: any
      firstAvailable:
      - {name: big, deviceClassName: big, allocationMode: All}
      - {name: small, deviceClassName: small, allocationMode: ExactCount, count: 2}
    constraints: [{requests: [gpu, any/big], matchAttribute: example.com/model}]
    config: [{requests: [any], opaque: {driver: gpu.example.com, parameters: {a: b}}}]`}
}

func TestSliceValidation(t *testing.T) {
	t.Parallel()
	const device, capacity = "spec.devices.0", "spec.devices.0.capacity.memory"
	slicesOfDevices().Create(t, []kindtest.Case{
		{"no driver", "spec.driver: null", "spec.driver: Required value"},
		{"driver that is no domain", "spec.driver: a_b", `spec.driver: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-...`},
		{"driver with capitals", "spec.driver: GPU.example.com", ""},
		{"driver of 64 bytes", "spec.driver: " + strings.Repeat("a", 62) + ".b", "spec.driver: Too long: may not be more than 63 bytes"},
		{"pool without a name", "spec.pool.name: null", "spec.pool.name: Required value"},
		{"pool with an empty part", "spec.pool.name: a//b", `spec.pool.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-...`},
		{"pool of no slices", "spec.pool.resourceSliceCount: 0", "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"},
		{"pool of a negative generation", "spec.pool.generation: -1", "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero"},
		{"no nodes", "spec.nodeName: null", "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"},
		{"nodes chosen twice", "spec.allNodes: true", "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set"},
		{"node without a name", "spec.nodeName: ''", "spec.nodeName: Invalid value: \"\": must be either unset or set to a non-empty string\nspec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"},
		{"node of an invalid name", "spec.nodeName: A", `spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-...`},
		{"all nodes", "spec.nodeName: null\nspec.allNodes: true", ""},
		{"not all nodes", "spec.allNodes: false", "spec.allNodes: Invalid value: false: must be either unset or set to true"},
		{"nodes by two terms", "spec.nodeName: null\nspec.nodeSelector: {nodeSelectorTerms: [{}, {}]}", `spec.nodeSelector.nodeSelectorTerms: Invalid value: [{"MatchExpressions":null,"MatchFields":null},{"MatchExpressions":null,"MatchFields":null}]: must have exactly one node selector term`},
		{"nodes by a value that is invalid", "spec.nodeName: null\nspec.nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [-]}]}]}", `spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "-": a valid label must be an empty...`},
		{"each device", "spec.nodeName: null\nspec.perDeviceNodeSelection: true\n" + device + ".allNodes: true", ""},
		{"each device without nodes", "spec.nodeName: null\nspec.perDeviceNodeSelection: true", "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"},
		{"each device with nodes twice", "spec.nodeName: null\nspec.perDeviceNodeSelection: true\n" + device + ".allNodes: true\n" + device + ".nodeName: n", "spec.devices[0]: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"},
		{"each device with an empty node", "spec.nodeName: null\nspec.perDeviceNodeSelection: true\n" + device + ".nodeName: ''", "spec.devices[0].nodeName: Invalid value: \"\": must not be empty\nspec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"},
		{"a device with a node", device + ".nodeName: n", "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"},
		{"counters beside devices", "spec.sharedCounters: [{name: set, counters: {slots: {value: 1}}}]", "spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed"},
		{"counters alone", "spec.devices: null\nspec.sharedCounters: [{name: set, counters: {slots: {value: 1}}}]", ""},
		{"counters without a name", "spec.devices: null\nspec.sharedCounters: [{counters: {slots: {value: 1}}}]", "spec.sharedCounters[0].name: Required value"},
		{"counters of an invalid name", "spec.devices: null\nspec.sharedCounters: [{name: A, counters: {B: {value: 1}}}]", `
spec.sharedCounters[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric char...
spec.sharedCounters[0].counters: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric ...`},
		{"no counters", "spec.devices: null\nspec.sharedCounters: [{name: set}]", "spec.sharedCounters[0].counters: Required value"},
		{"counters that are there twice", "spec.devices: null\nspec.sharedCounters: [{name: set, counters: {a: {value: 1}}}, {name: set, counters: {a: {value: 1}}}]", `spec.sharedCounters[1]: Duplicate value: {"name":"set","counters":{"a":{"value":"1"}}}`},
		{"devices of one name", "spec.devices: [{name: a}, {name: a}]", `spec.devices[1]: Duplicate value: "a"`},
		{"129 devices", "spec.devices: [" + strings.Repeat("{name: a}, ", 128) + "{name: a}]", "spec.devices: Too many: 129: must have at most 128 items"},
		{"65 devices with taints", "spec.devices: [{name: a, taints: [{key: a, effect: None}]}, " + strings.Repeat("{name: a}, ", 63) + "{name: a}]", "spec.devices: Too many: 65: must have at most 64 items"},
		{"device of an invalid name", device + ".name: a.b", `spec.devices[0].name: Invalid value: "a.b": must not contain dots`},
		{"attribute of an invalid name", device + ".attributes: {a-b: {int: 1}}", `spec.devices[0].attributes: Invalid value: "a-b": a valid C identifier must start with alphabetic character or '_', foll...`},
		{"attribute without a domain", device + ".attributes: {/a: {int: 1}}", `spec.devices[0].attributes: Invalid value: "": the domain must not be empty`},
		{"attribute of an invalid domain", device + ".attributes: {-/a: {int: 1}}", `spec.devices[0].attributes: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric c...`},
		{"attribute of a domain alone", device + ".attributes: {example.com/: {int: 1}}", `spec.devices[0].attributes: Invalid value: "": the name must not be empty`},
		{"attribute of a long name", device + ".attributes: {" + strings.Repeat("a", 33) + ": {int: 1}}", "spec.devices[0].attributes: Too long: may not be more than 32 bytes"},
		{"attribute without a value", device + ".attributes: {a: {}}", "spec.devices[0].attributes[a]: Invalid value: \"\": must specify one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"},
		{"attribute with two values", device + ".attributes: {a: {int: 1, bool: true}}", "spec.devices[0].attributes[a]: Invalid value: \"{int, bool}\": must specify exactly one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"},
		{"attribute of a long text", device + ".attributes: {a: {string: " + strings.Repeat("x", 65) + "}}", "spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes"},
		{"attribute of an invalid version", device + ".attributes: {a: {version: '1'}}", `spec.devices[0].attributes[a].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0`},
		{"attribute of a long version", device + ".attributes: {a: {version: 1.2.3-" + strings.Repeat("x", 60) + "}}", "spec.devices[0].attributes[a].version: Too long: may not be more than 64 bytes"},
		{"policy of an exclusive device", device + ".allowMultipleAllocations: false", "spec.devices[0].capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations must be true"},
		{"policy of two forms", capacity + ".requestPolicy.validRange: {min: 1}", `spec.devices[0].capacity[memory].requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`},
		{"values without a default", capacity + ".requestPolicy.default: null", "spec.devices[0].capacity[memory].requestPolicy.default: Required value: required when validValues is defined"},
		{"range without a default", capacity + ".requestPolicy: {validRange: {min: 1}}", "spec.devices[0].capacity[memory].requestPolicy.default: Required value: required when validRange is defined"},
		{"values that are not sorted", capacity + ".requestPolicy.validValues: [2, 1]", `spec.devices[0].capacity[memory].requestPolicy.validValues[1]: Invalid value: "1": values must be sorted in ascending order`},
		{"values that are there twice", capacity + ".requestPolicy.validValues: [2, 2]", `spec.devices[0].capacity[memory].requestPolicy.validValues[1]: Duplicate value: "2"`},
		{"value above the capacity", capacity + ".requestPolicy.validValues: [2, 11]", `spec.devices[0].capacity[memory].requestPolicy.validValues[1]: Invalid value: "11": option is larger than capacity value: 10`},
		{"default that is no value", capacity + ".requestPolicy.default: 3", `spec.devices[0].capacity[memory].requestPolicy.validValues: Invalid value: "3": default value is not valid according to the requestPolicy`},
		{"11 values", capacity + ".requestPolicy.validValues: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]", `
spec.devices[0].capacity[memory].requestPolicy.validValues: Too many: 11: must have at most 10 items
spec.devices[0].capacity[memory].requestPolicy.validValues: Invalid value: "2": default value is not valid according to the requestPolicy`},
		{"range", capacity + ".requestPolicy: {default: 4, validRange: {min: 2, max: 10, step: 2}}", ""},
		{"range without a minimum", capacity + ".requestPolicy: {default: 4, validRange: {max: 10}}", "spec.devices[0].capacity[memory].requestPolicy.validRange.min: Required value: required when validRange is defined"},
		{"minimum above the capacity", capacity + ".requestPolicy: {default: 11, validRange: {min: 11}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.min: Invalid value: "11": min is larger than capacity value: 10`},
		{"default below the minimum", capacity + ".requestPolicy: {default: 1, validRange: {min: 2}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.default: Invalid value: "1": default is less than min: 2`},
		{"minimum above the maximum", capacity + ".requestPolicy: {default: 5, validRange: {min: 5, max: 4}}", `
spec.devices[0].capacity[memory].requestPolicy.validRange.max: Invalid value: "5": min is larger than max: 4
spec.devices[0].capacity[memory].requestPolicy.validRange.default: Invalid value: "5": default is more than max: 4`},
		{"maximum above the capacity", capacity + ".requestPolicy: {default: 5, validRange: {min: 5, max: 11}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.max: Invalid value: "11": max is larger than capacity value: 10`},
		{"step of zero", capacity + ".requestPolicy: {default: 4, validRange: {min: 2, step: 0}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.step: Invalid value: "0": must not be zero`},
		{"step above the capacity", capacity + ".requestPolicy: {default: 2, validRange: {min: 2, step: 9}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.step: Invalid value: "9": one step 11 is larger than capacity value: 10`},
		{"default between steps", capacity + ".requestPolicy: {default: 5, validRange: {min: 2, step: 2}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.step: Invalid value: "5": value is not a multiple of a given step (2) from (2)`},
		{"maximum between steps", capacity + ".requestPolicy: {default: 4, validRange: {min: 2, max: 9, step: 2}}", `spec.devices[0].capacity[memory].requestPolicy.validRange.step: Invalid value: "9": value is not a multiple of a given step (2) from (2)`},
		{"taint without an effect", device + ".taints: [{key: a}]", "spec.devices[0].taints[0].effect: Required value"},
		{"taint of an unknown effect", device + ".taints: [{key: a, effect: Moon}]", `spec.devices[0].taints[0].effect: Unsupported value: "Moon": supported values: "NoExecute", "NoSchedule", "None"`},
		{"taint of invalid names", device + ".taints: [{key: -, value: -, effect: None}]", `
spec.devices[0].taints[0].key: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', a...
spec.devices[0].taints[0].value: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric ch...`},
		{"counters of one set twice", device + ".consumesCounters: [{counterSet: a, counters: {a: {value: 1}}}, {counterSet: a, counters: {a: {value: 1}}}]", `spec.devices[0].consumesCounters[1]: Duplicate value: {"counterSet":"a","counters":{"a":{"value":"1"}}}`},
		{"counters of no set", device + ".consumesCounters: [{counters: {a: {value: 1}}}]", "spec.devices[0].consumesCounters[0].counterSet: Required value"},
		{"condition of an invalid name", device + ".bindingConditions: ['-']", `spec.devices[0].bindingConditions[0]: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or...`},
		{"condition that is there twice", device + ".bindingConditions: [a, a]", `spec.devices[0].bindingConditions[1]: Duplicate value: "a"`},
		{"condition and failure of one name", device + ".bindingConditions: [failed]", `spec.devices[0].bindingFailureConditions[0]: Invalid value: "failed": bindingFailureConditions must not overlap with bindingConditions`},
		{"condition without a failure", device + ".bindingFailureConditions: null", "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"},
		{"failure without a condition", device + ".bindingConditions: null", "spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions"},
		{"33 attributes", device + ".attributes: {" + attributes(33) + "}", "spec.devices[0]: Invalid value: 34: the total number of attributes and capacities must not exceed 32"},
	})
	slicesOfDevices().Update(t, []kindtest.Case{
		{"other driver", "spec.driver: other", `spec.driver: Invalid value: "other": field is immutable`},
		{"other pool", "spec.pool.name: other", `spec.pool.name: Invalid value: "other": field is immutable`},
		{"other node", "spec.nodeName: other", `spec.nodeName: Invalid value: "other": field is immutable`},
		{"other devices", "spec.devices: [{name: other}]", ""},
		{"other taints that are invalid", device + ".taints: [{key: a}]", "spec.devices[0].taints[0].effect: Required value"},
	})
	slicesOfDevices().Warnings(t, []kindtest.Case{
		{"lower case", "", ""},
		{"capitals", "spec.driver: GPU", `spec.driver: driver names should be lowercase; "GPU" contains uppercase characters`},
	})
}

func TestClaimValidation(t *testing.T) {
	t.Parallel()
	const devices, exactly = "spec.devices", "spec.devices.requests.0.exactly"
	claimsOfDevices().Create(t, []kindtest.Case{
		{"requests of one name", devices + ".requests.1.name: gpu", `
spec.devices.constraints[0].requests[1]: Invalid value: "any/big": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
spec.devices.config[0].requests[0]: Invalid value: "any": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
spec.devices.requests[1]: Duplicate value: {"name":"gpu","firstAvailable":[{"name":"big","deviceClassName":"big","allocationMode":"All"},{"name":"small","deviceClassName":"small","allocationMode":"ExactCount","count":2}]}`},
		{"request of an invalid name", devices + ".requests.0.name: A", `
spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric ch...
spec.devices.constraints[0].requests[0]: Invalid value: "gpu": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`},
		{"request of nothing", exactly + ": null", "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"},
		{"request of two forms", devices + ".requests.0.firstAvailable: [{name: a}]", "\nspec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set\nspec.devices.requests[0].firstAvailable[0].deviceClassName: Required value"},
		{"33 requests", devices + ".requests: [" + strings.Repeat("{}, ", 32) + "{}]\n" + devices + ".constraints: null\n" + devices + ".config: null", "spec.devices.requests: Too many: 33: must have at most 32 items"},
		{"no class", exactly + ".deviceClassName: null", "spec.devices.requests[0].exactly.deviceClassName: Required value"},
		{"class of an invalid name", exactly + ".deviceClassName: A", `spec.devices.requests[0].exactly.deviceClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of low...`},
		{"count of all", exactly + ".allocationMode: All", "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'"},
		{"count of zero", exactly + ".count: -1", "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"},
		{"mode that is unknown", exactly + ".allocationMode: Some", `spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`},
		{"selector of nothing", exactly + ".selectors: [{}]", "spec.devices.requests[0].exactly.selectors[0].cel: Required value"},
		{"selector that does not compile", exactly + ".selectors: [{cel: {expression: 'device.'}}]", `spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "device.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'`},
		{"selector of another type", exactly + ".selectors: [{cel: {expression: '1'}}]", `spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "1": must evaluate to bool or the unknown type, not int`},
		{"selector that is long", exactly + ".selectors: [{cel: {expression: '" + strings.Repeat("x", 10<<10+1) + "'}}]", "spec.devices.requests[0].exactly.selectors[0].cel.expression: Too long: may not be more than 10240 bytes"},
		{"33 selectors", exactly + ".selectors: [" + strings.Repeat("{}, ", 32) + "{}]", "spec.devices.requests[0].exactly.selectors: Too many: 33: must have at most 32 items"},
		{"toleration of an unknown operator", exactly + ".tolerations: [{key: a, operator: Like}]", `spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"`},
		{"toleration of a value that exists", exactly + ".tolerations: [{key: a, operator: Exists, value: b}]", "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"b\": must be empty for operator `Exists`"},
		{"toleration of an invalid value", exactly + ".tolerations: [{key: a, operator: Equal, value: '-'}]", `spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "-": a valid label must be an empty string or cons...`},
		{"toleration of an invalid key", exactly + ".tolerations: [{key: '-', operator: Exists}]", `spec.devices.requests[0].exactly.tolerations[0].key: Invalid value: "-": name part must consist of alphanumeric characte...`},
		{"toleration of an unknown effect", exactly + ".tolerations: [{operator: Exists, effect: Moon}]", `spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "Moon": supported values: "NoExecute", "NoSchedule", "None"`},
		{"alternatives of one name", devices + ".requests.1.firstAvailable.1.name: big", `spec.devices.requests[1].firstAvailable[1]: Duplicate value: {"name":"big","deviceClassName":"small","allocationMode":"ExactCount","count":2}`},
		{"alternative of an invalid name", devices + ".requests.1.firstAvailable.1.name: A", `spec.devices.requests[1].firstAvailable[1].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower ca...`},
		{"9 alternatives", devices + ".requests.1.firstAvailable: [" + strings.Repeat("{}, ", 8) + "{}]\n" + devices + ".constraints: null", "spec.devices.requests[1].firstAvailable: Too many: 9: must have at most 8 items"},
		{"constraint of an unknown request", devices + ".constraints.0.requests: [other]", `spec.devices.constraints[0].requests[0]: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`},
		{"constraint of an unknown alternative", devices + ".constraints.0.requests: [any/other]", `spec.devices.constraints[0].requests[0]: Invalid value: "any/other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`},
		{"constraint of three parts", devices + ".constraints.0.requests: [any/big/er]", `spec.devices.constraints[0].requests[0]: Invalid value: "any/big/er": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`},
		{"constraint of one request twice", devices + ".constraints.0.requests: [gpu, gpu]", `spec.devices.constraints[0].requests[1]: Duplicate value: "gpu"`},
		{"constraint of nothing", devices + ".constraints.0.matchAttribute: null", `spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`},
		{"constraint of distinct attributes", devices + ".constraints.0: {distinctAttribute: example.com/a}", ""},
		{"constraint without a domain", devices + ".constraints.0: {distinctAttribute: a}", `spec.devices.constraints[0].distinctAttribute: Invalid value: "a": a fully qualified name must be a domain and a name separated by a slash`},
		{"parameters of nothing", devices + ".config.0.opaque: null", "spec.devices.config[0].opaque: Required value"},
		{"no parameters", devices + ".config.0.opaque.parameters: null", "spec.devices.config[0].opaque.parameters: Required value"},
		{"parameters that are no object", devices + ".config.0.opaque.parameters: [1]", `spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`},
		{"parameters that are long", devices + ".config.0.opaque.parameters: {a: " + strings.Repeat("x", 10<<10) + "}", "spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"},
		{"parameters of no driver", devices + ".config.0.opaque.driver: null", "spec.devices.config[0].opaque.driver: Required value"},
		{"parameters of an unknown request", devices + ".config.0.requests: [other]", `spec.devices.config[0].requests[0]: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`},
	})
	claimsOfDevices().Update(t, []kindtest.Case{{"other spec", exactly + ".count: 2", `spec: Invalid value: null: field is immutable`}})
	claimsOfDevices().Defaults(t, []kindtest.Case{
		{"one device", exactly + ": {deviceClassName: a, tolerations: [{key: a}]}", exactly + ".allocationMode: ExactCount\n" + exactly + ".count: 1\n" + exactly + ".tolerations.0.operator: Equal"},
		{"all devices", exactly + ": {deviceClassName: a, allocationMode: All}", exactly + ".allocationMode: All\n" + exactly + ".count: null"},
		{"alternative", devices + ".requests.1.firstAvailable: [{name: a, deviceClassName: a, tolerations: [{}]}]",
			devices + ".requests.1.firstAvailable.0.allocationMode: ExactCount\n" + devices + ".requests.1.firstAvailable.0.count: 1\n" + devices + ".requests.1.firstAvailable.0.tolerations.0.operator: Equal"},
	})
	claimsOfDevices().Row(t, []kindtest.Case{
		{"pending", "", "c | pending | <unknown>"},
		{"allocated", "status: {allocation: {}}", "c | allocated | <unknown>"},
		{"reserved", "status: {allocation: {}, reservedFor: [{resource: pods, name: a, uid: b}]}", "c | allocated,reserved | <unknown>"},
		{"deleted", "metadata.deletionTimestamp: 2026-01-01T00:00:00Z", "c | deleted | <unknown>"},
	})
}

func TestClaimStatusValidation(t *testing.T) {
	t.Parallel()
	const result, status = "status.allocation.devices.results.0", "status.devices.0"
	claims := claimsOfDevices()
	claims.Subresource = "status"
	claims.Update(t, []kindtest.Case{
		{"allocated", allocation, ""},
		{"result of an unknown request", allocation + "\n" + result + ".request: other", `status.allocation.devices.results[0].request: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`},
		{"result without a driver", allocation + "\n" + result + ".driver: null\nstatus.devices: null", "status.allocation.devices.results[0].driver: Required value"},
		{"result of an invalid pool", allocation + "\n" + result + ".pool: A\nstatus.devices: null", `status.allocation.devices.results[0].pool: Invalid value: "A": segment 0: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"result of an invalid device", allocation + "\n" + result + ".device: A\nstatus.devices: null", `status.allocation.devices.results[0].device: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case a...`},
		{"result of an invalid share", allocation + "\n" + result + ".shareID: x\nstatus.devices: null", `status.allocation.devices.results[0].shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format`},
		{"result of a share in capitals", allocation + "\n" + result + ".shareID: 0A000000-0000-0000-0000-000000000000\nstatus.devices: null", "status.allocation.devices.results[0].shareID: Invalid value: \"0A000000-0000-0000-0000-000000000000\": must be a lowercase UUID in 8-4-4-4-12 format"},
		{"configuration of no source", allocation + "\nstatus.allocation.devices.config: [{opaque: {driver: a, parameters: {}}}]", "status.allocation.devices.config[0].source: Required value"},
		{"nodes by no term", allocation + "\nstatus.allocation.nodeSelector: {nodeSelectorTerms: []}", "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term"},
		{"reserved for nothing", allocation + "\nstatus.reservedFor: [{}]", `
status.reservedFor[0].resource: Required value
status.reservedFor[0].name: Required value
status.reservedFor[0].uid: Required value`},
		{"reserved for one twice", allocation + "\nstatus.reservedFor: [{resource: pods, name: a, uid: b}, {resource: pods, name: c, uid: b}]", `status.reservedFor[1]: Duplicate value: {"resource":"pods","name":"c","uid":"b"}`},
		{"reserved without an allocation", "status.reservedFor: [{resource: pods, name: a, uid: b}]", "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"},
		{"status of another device", allocation + "\n" + status + ".device: other", `status.devices[0]: Invalid value: {"Driver":"d","Pool":"p","Device":"other","ShareID":""}: must be an allocated device in the claim`},
		{"status without names", allocation + "\n" + status + ": {}", `
status.devices[0].driver: Required value
status.devices[0].pool: Required value
status.devices[0].device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characte...
status.devices[0]: Invalid value: {"Driver":"","Pool":"","Device":"","ShareID":""}: must be an allocated device in the claim`},
		{"status of one device twice", allocation + "\nstatus.devices: [{driver: d, pool: p, device: x}, {driver: d, pool: p, device: x}]", `status.devices[1]: Duplicate value: {"driver":"d","pool":"p","device":"x","conditions":null}`},
		{"status with data that are no object", allocation + "\n" + status + ".data: 1", `status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object`},
		{"status with an invalid condition", allocation + "\n" + status + ".conditions: [{type: '-', status: 'True', reason: R, lastTransitionTime: 2026-01-01T00:00:00Z}]", `status.devices[0].conditions[0].type: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or...`},
		{"status with long names of the network", allocation + "\n" + status + ".networkData: {interfaceName: " + strings.Repeat("x", 257) + ", hardwareAddress: " + strings.Repeat("x", 129) + "}", `
status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes
status.devices[0].networkData.hardwareAddress: Too long: may not be more than 128 bytes`},
		{"status with addresses", allocation + "\n" + status + ".networkData: {ips: [10.0.0.1/8, fd00::1/64]}", ""},
		{"status with invalid addresses", allocation + "\n" + status + ".networkData: {ips: [10.0.0.1]}", `status.devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`},
		{"status with one address twice", allocation + "\n" + status + ".networkData: {ips: [10.0.0.1/8, 10.0.0.1/8]}", `status.devices[0].networkData.ips[1]: Duplicate value: "10.0.0.1/8"`},
	})
	claims.With(t, allocation).Update(t, []kindtest.Case{
		{"other allocation", result + ".device: y", "status.allocation: Invalid value: ..."},
		{"given back", "status: {}", ""},
		{"reserved while it is deleted", "metadata.deletionTimestamp: 2026-01-01T00:00:00Z\nstatus.reservedFor: [{resource: pods, name: a, uid: b}]", ""},
	})
}

// allocation is the status of a claim with one device.
const allocation = `status.allocation: {devices: {results: [{request: gpu, driver: d, pool: p, device: x}]}}
status.devices: [{driver: d, pool: p, device: x, data: {a: b}}]`

func TestClassValidation(t *testing.T) {
	t.Parallel()
	classes := kindtest.Kind{Resources: Resources(), APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass", Valid: `
metadata: {name: c}
spec:
  selectors: [{cel: {expression: device.driver == "a"}}]
  config: [{opaque: {driver: a, parameters: {a: b}}}]
  extendedResourceName: example.com/gpu`}
	classes.Create(t, []kindtest.Case{
		{"selector of nothing", "spec.selectors: [{}]", "spec.selectors[0].cel: Required value"},
		{"configuration of nothing", "spec.config: [{}]", "spec.config[0].opaque: Required value"},
		{"resource that is native", "spec.extendedResourceName: cpu", `spec.extendedResourceName: Invalid value: "cpu": a name must be a domain-prefixed path, such as 'example.com/my-prop'`},
		{"resource that is empty", "spec.extendedResourceName: ''", `spec.extendedResourceName: Invalid value: "": a name must be a domain-prefixed path, such as 'example.com/my-prop'
spec.extendedResourceName: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"no resource", "spec.extendedResourceName: null", ""},
		{"33 selectors", "spec.selectors: [" + strings.Repeat("{}, ", 32) + "{}]", "spec.selectors: Too many: 33: must have at most 32 items"},
	})
}

func TestClaimTemplateValidation(t *testing.T) {
	t.Parallel()
	templates := kindtest.Kind{Resources: Resources(), APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate", Valid: `
metadata: {name: t, namespace: default}
spec: {metadata: {labels: {a: b}}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: a}}]}}}`}
	templates.Create(t, []kindtest.Case{
		{"metadata with a name", "spec.metadata.name: a", "spec.metadata.name: Forbidden: cannot be set"},
		{"request of nothing", "spec.spec.devices.requests: [{name: a}]", "spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"},
	})
	templates.Update(t, []kindtest.Case{{"other labels", "spec.metadata.labels.a: c", `spec: Invalid value: {"labels":{"a":"c"},"Spec":...`}})
	templates.Defaults(t, []kindtest.Case{{"mode", "", "spec.spec.devices.requests.0.exactly.allocationMode: ExactCount"}})
}

// attributes returns n attributes in YAML.
func attributes(n int) string {
	var list []string
	for i := range n {
		list = append(list, "a"+strings.Repeat("b", i%30)+string(rune('a'+i/30))+": {int: 1}")
	}
	return strings.Join(list, ", ")
}
