// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkSecurity has the rules of what a container may do.
func checkSecurity(f *valid.Field, c *corev1.SecurityContext, hostUsers bool) {
	if c == nil {
		return
	}
	if c.RunAsUser != nil {
		f.Problems("runAsUser", *c.RunAsUser, validation.IsValidUserID(*c.RunAsUser))
	}
	if c.RunAsGroup != nil {
		f.Problems("runAsGroup", *c.RunAsGroup, validation.IsValidGroupID(*c.RunAsGroup))
	}
	if c.ProcMount != nil {
		valid.Supported(f, "procMount", *c.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if hostUsers && *c.ProcMount == corev1.UnmaskedProcMount {
			f.Invalid("procMount", *c.ProcMount, "`hostUsers` must be false to use `Unmasked`")
		}
	}
	checkSeccomp(f, c.SeccompProfile)
	if c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation {
		if kind.Value(c.Privileged) {
			f.Invalid(valid.Self, valid.Untagged(c), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
		}
		if c.Capabilities != nil && slices.Contains(c.Capabilities.Add, "CAP_SYS_ADMIN") {
			f.Invalid(valid.Self, valid.Untagged(c), "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
		}
	}
	checkWindowsOptions(f, c.WindowsOptions)
	checkAppArmor(f, c.AppArmorProfile)
}

// checkPodSecurity has the rules of what all containers of a Pod share.
func checkPodSecurity(f *valid.Field, c *corev1.PodSecurityContext, spec *corev1.PodSpec) {
	if c == nil {
		return
	}
	if c.FSGroup != nil {
		f.Problems("fsGroup", *c.FSGroup, validation.IsValidGroupID(*c.FSGroup))
	}
	if c.RunAsUser != nil {
		f.Problems("runAsUser", *c.RunAsUser, validation.IsValidUserID(*c.RunAsUser))
	}
	if c.RunAsGroup != nil {
		f.Problems("runAsGroup", *c.RunAsGroup, validation.IsValidGroupID(*c.RunAsGroup))
	}
	for i, id := range c.SupplementalGroups {
		groups := f.Child("supplementalGroups")
		at := groups.Index(i)
		at.Problems(valid.Self, id, validation.IsValidGroupID(id))
	}
	if len(c.Sysctls) > 0 {
		at := f.Child("sysctls")
		checkSysctls(&at, c.Sysctls, spec)
	}
	if c.FSGroupChangePolicy != nil {
		valid.Supported(f, "fsGroupChangePolicy", *c.FSGroupChangePolicy, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	}
	checkSeccomp(f, c.SeccompProfile)
	checkWindowsOptions(f, c.WindowsOptions)
	checkAppArmor(f, c.AppArmorProfile)
	if c.SupplementalGroupsPolicy != nil {
		valid.Supported(f, "supplementalGroupsPolicy", *c.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	}
	if c.SELinuxChangePolicy != nil {
		valid.Supported(f, "seLinuxChangePolicy", *c.SELinuxChangePolicy, corev1.SELinuxChangePolicyRecursive)
	}
}

// sysctlName is the form of the name of a kernel parameter.
const sysctlName = `^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`

var sysctlPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(sysctlName) })

func checkSysctls(f *valid.Field, list []corev1.Sysctl, spec *corev1.PodSpec) {
	seen := sets.New[string]()
	for i := range list {
		name, at := list[i].Name, f.Index(i)
		switch {
		case name == "":
			at.Required("name", "")
		case len(name) > 253 || !sysctlPattern().MatchString(name):
			at.Invalid("name", name, "must have at most 253 characters and match regex "+sysctlName)
		case seen.Has(name):
			at.Duplicate("name", name)
		}
		dotted := strings.ReplaceAll(name, "/", ".")
		switch {
		case spec.HostNetwork && strings.HasPrefix(dotted, "net."):
			at.Invalid("name", name, "may not be specified when 'hostNetwork' is true")
		case spec.HostIPC && (strings.HasPrefix(dotted, "kernel.shm") || strings.HasPrefix(dotted, "kernel.msg") ||
			strings.HasPrefix(dotted, "fs.mqueue.") || dotted == "kernel.sem"):
			at.Invalid("name", name, "may not be specified when 'hostIPC' is true")
		}
		seen.Insert(name)
	}
}

func checkSeccomp(in *valid.Field, p *corev1.SeccompProfile) {
	if p == nil {
		return
	}
	f := in.Child("seccompProfile")
	if p.Type == "" {
		f.Required("type", "type is required when seccompProfile is set")
	} else {
		valid.Supported(&f, "type", p.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	}
	switch {
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile == nil:
		f.Required("localhostProfile", "must be set when seccomp type is Localhost")
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		f.Descending("localhostProfile", *p.LocalhostProfile)
	case p.LocalhostProfile != nil:
		f.Invalid("localhostProfile", valid.Untagged(p), "can only be set when seccomp type is Localhost")
	}
}

func checkAppArmor(in *valid.Field, p *corev1.AppArmorProfile) {
	if p == nil {
		return
	}
	f := in.Child("appArmorProfile")
	const required = "must be set when AppArmor type is Localhost"
	switch p.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		switch {
		case p.LocalhostProfile == nil:
			f.Required("localhostProfile", required)
			return
		case strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile:
			f.Invalid("localhostProfile", *p.LocalhostProfile, "must not be padded with whitespace")
		case *p.LocalhostProfile == "":
			f.Required("localhostProfile", required)
		}
		const longest = 4095
		if len(*p.LocalhostProfile) > longest {
			f.TooLong("localhostProfile", longest)
		}
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			f.Invalid("localhostProfile", p.LocalhostProfile, "can only be set when AppArmor type is Localhost")
		}
	case "":
		f.Required("type", "type is required when appArmorProfile is set")
	default:
		valid.Supported(&f, "type", p.Type, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
	}
}

// checkOS has the rules that depend on the operating system.
func checkOS(f *valid.Field, spec *corev1.PodSpec) {
	if spec.OS == nil {
		return
	}
	at := f.Child("os")
	if !at.NonEmpty("name", string(spec.OS.Name)) || !valid.Supported(&at, valid.Self, spec.OS.Name, corev1.Linux, corev1.Windows) {
		return
	}
	if spec.OS.Name == corev1.Windows {
		checkWindows(f, spec)
		return
	}
	const refused = "windows options cannot be set for a linux pod"
	if c := spec.SecurityContext; c != nil && c.WindowsOptions != nil {
		at := f.Child("securityContext")
		at.Forbidden("windowsOptions", refused)
	}
	if !anyContainer(spec, hasWindowsOptions) {
		return
	}
	EachContainer(f, spec, func(at *valid.Field, c *corev1.Container) {
		if hasWindowsOptions(c) {
			at := at.Child("securityContext")
			at.Forbidden("windowsOptions", refused)
		}
	})
}

func hasWindowsOptions(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil
}

// anyContainer reports whether something is so of a container, whose place is not asked.
func anyContainer(spec *corev1.PodSpec, is func(c *corev1.Container) bool) bool {
	for i := range spec.InitContainers {
		if is(&spec.InitContainers[i]) {
			return true
		}
	}
	for i := range spec.Containers {
		if is(&spec.Containers[i]) {
			return true
		}
	}
	for i := range spec.EphemeralContainers {
		if is((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
			return true
		}
	}
	return false
}

// EachContainer visits all containers of a Pod, in the order of Kubernetes.
func EachContainer(f *valid.Field, spec *corev1.PodSpec, visit func(at *valid.Field, c *corev1.Container)) {
	list := f.Child("initContainers")
	for i := range spec.InitContainers {
		at := list.Index(i)
		visit(&at, &spec.InitContainers[i])
	}
	list = f.Child("containers")
	for i := range spec.Containers {
		at := list.Index(i)
		visit(&at, &spec.Containers[i])
	}
	list = f.Child("ephemeralContainers")
	for i := range spec.EphemeralContainers {
		at := list.Index(i)
		visit(&at, (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// checkWindows refuses what only Linux has.
func checkWindows(f *valid.Field, spec *corev1.PodSpec) {
	refuse := func(f *valid.Field, name string, set bool) {
		if set {
			f.Forbidden(name, "cannot be set for a windows pod")
		}
	}
	c := spec.SecurityContext
	if c == nil { // defaulted, but not in what was stored long ago
		c = &corev1.PodSecurityContext{}
	}
	at := f.Child("securityContext")
	refuse(&at, "appArmorProfile", c.AppArmorProfile != nil)
	refuse(&at, "seLinuxOptions", c.SELinuxOptions != nil)
	refuse(f, "hostUsers", spec.HostUsers != nil)
	refuse(f, "hostPID", spec.HostPID)
	refuse(f, "hostIPC", spec.HostIPC)
	refuse(&at, "seccompProfile", c.SeccompProfile != nil)
	refuse(&at, "fsGroup", c.FSGroup != nil)
	refuse(&at, "fsGroupChangePolicy", c.FSGroupChangePolicy != nil)
	refuse(&at, "sysctls", len(c.Sysctls) > 0)
	refuse(f, "shareProcessNamespace", spec.ShareProcessNamespace != nil)
	refuse(&at, "runAsUser", c.RunAsUser != nil)
	refuse(&at, "runAsGroup", c.RunAsGroup != nil)
	refuse(&at, "supplementalGroups", c.SupplementalGroups != nil)
	refuse(&at, "supplementalGroupsPolicy", c.SupplementalGroupsPolicy != nil)
	refuse(&at, "seLinuxChangePolicy", c.SELinuxChangePolicy != nil)
	EachContainer(f, spec, func(at *valid.Field, container *corev1.Container) {
		c := container.SecurityContext
		if c == nil {
			return
		}
		in := at.Child("securityContext")
		refuse(&in, "appArmorProfile", c.AppArmorProfile != nil)
		refuse(&in, "seLinuxOptions", c.SELinuxOptions != nil)
		refuse(&in, "seccompProfile", c.SeccompProfile != nil)
		refuse(&in, "capabilities", c.Capabilities != nil)
		refuse(&in, "readOnlyRootFilesystem", c.ReadOnlyRootFilesystem != nil)
		refuse(&in, "privileged", c.Privileged != nil)
		refuse(&in, "allowPrivilegeEscalation", c.AllowPrivilegeEscalation != nil)
		refuse(&in, "procMount", c.ProcMount != nil)
		refuse(&in, "runAsUser", c.RunAsUser != nil)
		refuse(&in, "runAsGroup", c.RunAsGroup != nil)
	})
}

// windowsNames are the forms of the parts of a user name on Windows.
type windowsNames struct{ control, netBIOS, domain, strange, dots *regexp.Regexp }

var windowsPatterns = sync.OnceValue(func() windowsNames {
	const label = `[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`
	return windowsNames{
		control: regexp.MustCompile(`[[:cntrl:]]+`),
		netBIOS: regexp.MustCompile(`^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$`),
		domain:  regexp.MustCompile(`^` + label + `(?:\.` + label + `)*$`),
		strange: regexp.MustCompile(`["/\\:;|=,\+\*\?<>@\[\]]`),
		dots:    regexp.MustCompile(`^[\. ]+$`),
	}
})

func checkWindowsOptions(in *valid.Field, o *corev1.WindowsSecurityContextOptions) {
	if o == nil {
		return
	}
	f := in.Child("windowsOptions")
	if n := o.GMSACredentialSpecName; n != nil {
		f.Subdomain("gmsaCredentialSpecName", *n)
	}
	if s := o.GMSACredentialSpec; s != nil {
		const most = 64 // KiB
		switch {
		case *s == "":
			f.Invalid("gmsaCredentialSpec", *s, "gmsaCredentialSpec cannot be an empty string")
		case len(*s) > most<<10:
			f.Invalid("gmsaCredentialSpec", *s, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", most))
		}
	}
	if o.RunAsUserName != nil {
		checkWindowsUser(&f, *o.RunAsUserName)
	}
}

func checkWindowsUser(f *valid.Field, name string) {
	say := func(what string) { f.Invalid("runAsUserName", name, "runAsUserName"+what) }
	patterns := windowsPatterns()
	switch {
	case name == "":
		say(" cannot be an empty string")
		return
	case patterns.control.MatchString(name):
		say(" cannot contain control characters")
		return
	case strings.Count(name, `\`) > 1:
		say(" cannot contain more than one backslash")
		return
	}
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	const longestDomain, longestUser = 256, 104
	if len(domain) >= longestDomain {
		say(fmt.Sprintf("'s Domain length must be under %d characters", longestDomain))
	}
	if hasDomain && !patterns.netBIOS.MatchString(domain) && !patterns.domain.MatchString(domain) {
		say("'s Domain doesn't match the NetBios nor the DNS format")
	}
	switch {
	case user == "":
		say("'s User cannot be empty")
	case len(user) > longestUser:
		say(fmt.Sprintf("'s User length must not be longer than %d characters", longestUser))
	}
	if patterns.dots.MatchString(user) {
		say("'s User cannot contain only periods or spaces")
	}
	if patterns.strange.MatchString(user) {
		say(`'s User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
}

// checkHostProcess has the rules of containers that are processes of a Windows
// node.
func checkHostProcess(f *valid.Field, spec *corev1.PodSpec) {
	var pod *bool
	if c := spec.SecurityContext; c != nil && c.WindowsOptions != nil {
		pod = c.WindowsOptions.HostProcess
	}
	if pod == nil && !anyContainer(spec, hasWindowsOptions) {
		return
	}
	containers, host := 0, 0
	EachContainer(f, spec, func(at *valid.Field, c *corev1.Container) {
		containers++
		own := pod
		if s := c.SecurityContext; s != nil && s.WindowsOptions != nil && s.WindowsOptions.HostProcess != nil {
			own = s.WindowsOptions.HostProcess
			if pod != nil && *pod != *own {
				security := at.Child("securityContext")
				options := security.Child("windowsOptions")
				options.Invalid("hostProcess", *own, fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *pod))
			}
		}
		if kind.Value(own) {
			host++
		}
	})
	if host == 0 {
		return
	}
	if host != containers {
		f.Invalid(valid.Self, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !spec.HostNetwork {
		f.Invalid("hostNetwork", false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}

// checkHostUsers has the rules of a Pod with users of its own.
func checkHostUsers(f *valid.Field, spec *corev1.PodSpec) {
	if spec.HostUsers == nil || *spec.HostUsers {
		return
	}
	const refused = "when `hostUsers` is false"
	if spec.HostNetwork {
		f.Forbidden("hostNetwork", refused)
	}
	if spec.HostPID {
		f.Forbidden("HostPID", refused)
	}
	if spec.HostIPC {
		f.Forbidden("HostIPC", refused)
	}
	EachContainer(f, spec, func(at *valid.Field, c *corev1.Container) {
		if len(c.VolumeDevices) > 0 {
			at.Forbidden("volumeDevices", refused)
		}
	})
}
