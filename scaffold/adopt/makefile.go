// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Marks of what is changed in a Makefile, from which it is restored.
const (
	kept      = "#steer-adopt#"  // before a line that is out of use
	added     = " # steer adopt" // at the end of a line that is in its place
	beginning = "# steer adopt: begin. `steer adopt --undo` removes this, and restores the lines with #steer-adopt#."
	ending    = "# steer adopt: end."
)

// Tools that Steer stands in for, by the paths of their Go packages.
const (
	controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen"
	setupEnvtest  = "sigs.k8s.io/controller-runtime/tools/setup-envtest"
)

// finding is a place of a Makefile.
type finding struct {
	line int // from 1
	text string
}

// makefile is a Makefile with its tools replaced.
type makefile struct {
	text string
	// replaced are the installations of tools that were recognised, left those that
	// mention a tool and were not.
	replaced, left []finding
	// tools are the files that the tools are installed as, in the terms of the Makefile.
	tools []string
}

var (
	header   = regexp.MustCompile(`^([^\s#:=][^:=]*):(?:[^=]|$)`)
	call     = regexp.MustCompile(`^\$\(call [^,()]+,(\$\(\w+\)|[^\s,()]+),`)
	variable = regexp.MustCompile(`^\$[({]\w+[)}]$`)
	// installation is a command that installs a program: of go, by its name or a variable, or
	// a function of the Makefile.
	installation = regexp.MustCompile(`(?:\bgo|\$[({]\w+[)}]) (?:install|get) |\$\(call `)
	scriptFetch  = regexp.MustCompile(`setup-envtest\.sh \|\| curl .*setup-envtest\.sh$`)
	scriptUse    = regexp.MustCompile(`^(?:source|\.) \S*setup-envtest\.sh; *fetch_envtest_tools (\S+); *setup_envtest_env \S+; *(go test .*)$`)
)

// adopt points the tools of a Makefile at Steer: the recipes that install controller-gen
// and setup-envtest install Steer under their names. It changes the recipes that it
// understands as a whole, and nothing else. install is the command that installs Steer
// into the folder $(abspath $(dir $(1))).
func adoptMakefile(text, version, install string) (*makefile, error) {
	text, err := restoreMakefile(text)
	if err != nil {
		return nil, err
	}
	m := &makefile{}
	separator := "\n"
	if !strings.HasSuffix(text, "\n") {
		text, separator = text+"\n", "" // the restored text ends as this one
	}
	lines := strings.SplitAfter(text, "\n")
	var out strings.Builder
	for i := 0; i < len(lines); {
		end := recipeEnd(lines, i)
		if end == i {
			out.WriteString(lines[i])
			i++
			continue
		}
		out.WriteString(lines[i])
		out.WriteString(m.recipe(strings.TrimSpace(header.FindStringSubmatch(lines[i])[1]), i+2, lines[i+1:end]))
		i = end
	}
	if len(m.replaced) > 0 {
		out.WriteString(separator + beginning + "\n" + block(version, install, m.tools) + ending + "\n")
	}
	m.text = out.String()
	return m, nil
}

// block is what the recipes call.
func block(version, install string, tools []string) string {
	return `# Steer stands in for controller-gen and, with a control plane of its own, for setup-envtest.
STEER_VERSION ?= ` + version + `
.PHONY: ` + strings.Join(tools, " ") + `
define steer-tool
@mkdir -p "$(dir $(1))"
@test -x "$(dir $(1))steer-$(STEER_VERSION)" || { ` + install + ` && mv "$(dir $(1))steer" "$(dir $(1))steer-$(STEER_VERSION)"; }
@ln -sf "steer-$(STEER_VERSION)" "$(1)"
endef
`
}

// recipeEnd is the index after the recipe of the rule whose header is lines[i]; i if
// there is no rule with a recipe.
func recipeEnd(lines []string, i int) int {
	if !header.MatchString(lines[i]) || continues(lines[i]) {
		return i
	}
	end := i + 1
	// The last of lines is empty: a recipe that goes on there is cut off, and left as it is.
	for end < len(lines) && lines[end] != "" && (strings.HasPrefix(lines[end], "\t") || end > i+1 && continues(lines[end-1])) {
		end++
	}
	if end == i+1 {
		return i
	}
	return end
}

// continues reports whether a line goes on in the next one.
func continues(line string) bool {
	return strings.HasSuffix(strings.TrimRight(line, "\r\n"), `\`)
}

// recipe is the recipe of a target with the installation of a tool replaced, or as it was.
func (m *makefile) recipe(target string, first int, lines []string) string {
	text := strings.Join(lines, "")
	if strings.Contains(text, "setup-envtest.sh") {
		return m.script(first, lines)
	}
	for _, tool := range []string{controllerGen, setupEnvtest} {
		if !strings.Contains(text, tool) {
			continue
		}
		found := finding{first, strings.TrimSpace(lines[0])}
		file := target
		if !variable.MatchString(file) {
			match := call.FindStringSubmatch(strings.TrimLeft(found.text, "@"))
			if match == nil {
				m.left = append(m.left, found)
				return text
			}
			file = match[1]
		}
		if !installsOnly(lines, filepath.Base(tool), tool, file) {
			m.left = append(m.left, found)
			return text
		}
		m.replaced, m.tools = append(m.replaced, found), append(m.tools, file)
		return comment(lines) + "\t$(call steer-tool," + file + ")" + added + "\n"
	}
	return text
}

// installsOnly reports whether every command of a recipe is about the tool.
func installsOnly(lines []string, name, tool, file string) bool {
	command, installs := "", 0
	for _, line := range lines {
		command += line
		if continues(line) {
			continue
		}
		if !strings.Contains(command, name) && !strings.Contains(command, file) {
			return false
		}
		installs += len(installation.FindAllString(command, -1))
		command = ""
	}
	return installs == 1 && command == "" && strings.Contains(strings.Join(lines, ""), tool)
}

// script replaces the download and the use of the shell script that came before the
// program setup-envtest.
func (m *makefile) script(first int, lines []string) string {
	var fetch, use = -1, -1
	var dir, rest string
	for i, line := range lines {
		command := strings.TrimLeft(strings.TrimSpace(line), "@")
		if scriptFetch.MatchString(command) {
			fetch = i
		} else if match := scriptUse.FindStringSubmatch(command); match != nil && !continues(line) {
			use, dir, rest = i, match[1], match[2]
		}
	}
	if fetch < 0 || use < fetch {
		m.left = append(m.left, finding{first, strings.TrimSpace(lines[0])})
		return strings.Join(lines, "")
	}
	file := dir + "/setup-envtest"
	var out strings.Builder
	for i, line := range lines {
		switch i {
		case fetch:
			m.replaced, m.tools = append(m.replaced, finding{first + i, strings.TrimSpace(line)}), append(m.tools, file)
			out.WriteString(comment(lines[i:i+1]) + "\t$(call steer-tool," + file + ")" + added + "\n")
		case use:
			m.replaced = append(m.replaced, finding{first + i, strings.TrimSpace(line)})
			out.WriteString(comment(lines[i:i+1]) + "\tKUBEBUILDER_ASSETS=\"$$(" + file + " use --bin-dir " + dir + " -p path)\" " + rest + added + "\n")
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// commands are the lines of a Makefile as a shell gets those of recipes: a line that goes
// on in the next one is joined with it, without the tab that begins a line of a recipe.
func commands(text string) []string {
	var out []string
	command := ""
	for line := range strings.Lines(text) {
		if command != "" {
			line = strings.TrimPrefix(line, "\t")
		}
		line = strings.TrimRight(line, "\r\n")
		if continues(line) {
			command += strings.TrimSuffix(line, `\`)
			continue
		}
		out = append(out, command+line)
		command = ""
	}
	return append(out, command)
}

// comment takes lines out of use.
func comment(lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(kept + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n")
		}
	}
	return out.String()
}

// restoreMakefile takes back what adoptMakefile changed, and keeps all other changes.
func restoreMakefile(text string) (string, error) {
	begin := strings.Index(text, beginning)
	if begin < 0 {
		return restoreLines(text), nil
	}
	end := strings.Index(text[begin:], ending)
	if end < 0 {
		return "", fmt.Errorf("Makefile:%d: the line %q that ends this part is missing; run: git diff Makefile", 1+strings.Count(text[:begin], "\n"), ending)
	}
	after := strings.TrimPrefix(strings.TrimPrefix(text[begin+end+len(ending):], "\r"), "\n")
	return strings.TrimSuffix(restoreLines(text[:begin]), "\n") + restoreLines(after), nil
}

func restoreLines(text string) string {
	var out strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		if !strings.HasSuffix(strings.TrimRight(line, "\r\n"), added) {
			out.WriteString(strings.TrimPrefix(line, kept))
		}
	}
	return out.String()
}

// adopted reports whether a Makefile has changes of adoptMakefile.
func adopted(text string) bool {
	return strings.Contains(text, beginning) || strings.Contains(text, "\n"+kept)
}

var (
	definition = regexp.MustCompile(`(?m)^(\w+) *[:?]?= *(.*?) *$`)
	reference  = regexp.MustCompile(`\$[({](\w+)[)}]`)
	thisYear   = regexp.MustCompile(`\$\(shell date \+%Y\)`)
	here       = regexp.MustCompile(`\$\((?:shell pwd|CURDIR|PWD)\)|\$\{PWD\}`)
)

// evaluate is the value of a text of a Makefile in a folder; ok is false if it needs
// more than the values of variables.
func evaluate(makefile, dir, text string) (value string, ok bool) {
	values := map[string]string{}
	for _, match := range definition.FindAllStringSubmatch(makefile, -1) {
		values[match[1]] = match[2]
	}
	for range 10 {
		text = here.ReplaceAllLiteralString(text, filepath.ToSlash(dir))
		text = thisYear.ReplaceAllLiteralString(text, time.Now().Format("2006"))
		text = reference.ReplaceAllStringFunc(text, func(r string) string {
			if value, known := values[r[2:len(r)-1]]; known {
				return value
			}
			return r
		})
	}
	return filepath.FromSlash(text), !strings.Contains(text, "$")
}
