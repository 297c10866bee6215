// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package walkthrough plays pages of documentation: it writes their files, makes their
// edits, runs their commands, and compares what those print with what the page shows.
// The program play in it is what .ci/run runs.
//
// A page is Markdown. A comment on the line above a block says what the block is:
//
//	<!-- file: NAME -->      the whole content of a file; any language
//	<!-- edit: NAME -->      a diff: its lines without + are in the file, once and in a row
//	<!-- terminal: NAME -->  a console in the background; <!-- end: NAME --> ends it
//	<!-- fails: STATUS -->   a console whose last command ends with that status
//	<!-- output -->          not played: output that is made elsewhere
//	<!-- fragment: NAME -->  not played: Go that the tests of the repository compile
//
// A block of the language console without a comment is played too. Its lines with "$ "
// are commands; the lines below a command are what it prints, if there are any. "..."
// stands for the rest of a line, and alone on a line for any lines. Durations, points in
// time and the number of spaces are not compared. In a terminal, where several programs
// may write, the lines are waited for in any order and between others.
package walkthrough

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Kind is what a block is for.
type Kind string

// The kinds of blocks; Plain is any block that is not played and does not say why.
const (
	File     Kind = "file"
	Edit     Kind = "edit"
	Terminal Kind = "terminal"
	End      Kind = "end"
	Console  Kind = "console"
	Output   Kind = "output"
	Fragment Kind = "fragment"
	Plain    Kind = "plain"
)

// Block is a fenced block of a page, or the comment that ends a terminal.
type Block struct {
	Page string
	// Line of its fence or comment, from 1.
	Line int
	Kind Kind
	// Name of the file, terminal or fragment.
	Name string
	// Status is that of the last command of a console.
	Status int
	// Language behind the fence, may be empty.
	Language string
	// Lines between the fences.
	Lines []string
}

// Command is a line with "$ " and what the page shows below it.
type Command struct {
	Line  int
	Text  string
	Shown []string
}

var comment = regexp.MustCompile(`^<!-- ([a-z]+)(?:: (\S+))? -->$`)

// Read reads the blocks of a page, in order.
func Read(page string) ([]Block, error) {
	data, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("walkthrough: %w", err)
	}
	return parse(page, string(data))
}

func parse(page, text string) ([]Block, error) {
	var blocks []Block
	var open *Block
	mark := Block{}
	for i, line := range strings.Split(text, "\n") {
		at := i + 1
		switch m := comment.FindStringSubmatch(line); {
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Lines = append(open.Lines, line)
		case strings.HasPrefix(line, "```"):
			mark.Page, mark.Line, mark.Language = page, at, strings.TrimPrefix(line, "```")
			switch {
			case mark.Kind == "" && mark.Language == "console":
				mark.Kind = Console
			case mark.Kind == "":
				mark.Kind = Plain
			}
			block := mark
			open, mark = &block, Block{}
		case m != nil:
			next, err := marked(m[1], m[2])
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, at, err)
			}
			if next.Kind == End {
				next.Page, next.Line = page, at
				blocks = append(blocks, next)
				next = Block{}
			}
			mark = next
		default:
			mark = Block{}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: the block has no end", page, open.Line)
	}
	return blocks, nil
}

// marked returns the block that a comment announces. Other comments announce none.
func marked(word, argument string) (Block, error) {
	switch kind := Kind(word); kind {
	case File, Edit, Terminal, End, Fragment:
		if argument == "" {
			return Block{}, fmt.Errorf("the comment %q needs a name", word)
		}
		return Block{Kind: kind, Name: argument}, nil
	case Output:
		return Block{Kind: Output}, nil
	}
	if word != "fails" {
		return Block{}, nil
	}
	status, err := strconv.Atoi(argument)
	if err != nil || status < 1 {
		return Block{}, fmt.Errorf("the comment %q needs an exit status above 0", word)
	}
	return Block{Kind: Console, Status: status}, nil
}

// Commands returns the commands of a console or terminal. Lines above the first one are
// those of a command without text: further output of a terminal.
func (b Block) Commands() []Command {
	var commands []Command
	for i, line := range b.Lines {
		text, ok := strings.CutPrefix(line, "$ ")
		switch {
		case ok:
			commands = append(commands, Command{Line: b.Line + 1 + i, Text: text})
		case len(commands) == 0:
			commands = append(commands, Command{Line: b.Line + 1 + i, Shown: []string{line}})
		default:
			last := &commands[len(commands)-1]
			last.Shown = append(last.Shown, line)
		}
	}
	return commands
}
