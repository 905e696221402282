package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const referencePath = "../docs/cli.md"

// Ensure that the reference of the command line is what the commands themselves say.
func TestReference(t *testing.T) {
	got := reference(newRoot(newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})))
	if *update {
		if err := os.WriteFile(referencePath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the commands say (go generate ./enqueue):\n%s", referencePath, diff)
	}
}

// Ensure that every command explains itself alike: a short line without a full stop, an example, and a group.
func TestHelp(t *testing.T) {
	eachCommand(newRoot(newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})), func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.Short[:1] != strings.ToUpper(c.Short[:1]) {
			t.Errorf("%s: short help %q", path, c.Short)
		}
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(line, "enqueue") {
				t.Errorf("%s: example %q runs something else", path, line)
			}
		}
		if c.Example == "" {
			t.Errorf("%s has no example", path)
		}
		if c.HasParent() && !c.Parent().HasParent() && c.GroupID == "" {
			t.Errorf("%s is in no group", path)
		}
		for line := range strings.Lines(c.Long) {
			if n := len(strings.TrimSuffix(line, "\n")); n > 110 {
				t.Errorf("%s: a line of its help has %d characters: %s", path, n, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: usage %q", path, f.Name, f.Usage)
			}
		})
	})
}

// eachCommand visits the commands that people see, in the order of the help.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	visit(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

// reference writes the commands as a page of Markdown.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# enqueue: commands and flags\n\n<!-- Written by `go generate ./enqueue`; edit the commands instead. -->\n\n")
	b.WriteString("What results look like, exit codes and the shapes of JSON are in the [reference](reference.md#enqueue).\n\n")
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "* %s", g.Title)
		separator := " "
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && !c.Hidden && c.Name() != "help" {
				fmt.Fprintf(&b, "%s[%s](#%s)", separator, c.Name(), strings.ReplaceAll(c.CommandPath(), " ", "-"))
				separator = ", "
			}
		}
		b.WriteByte('\n')
	}
	eachCommand(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n", c.CommandPath())
		if c.Runnable() && c.HasParent() && !c.HasSubCommands() {
			fmt.Fprintf(&b, "```\n%s\n```\n\n", c.UseLine())
		}
		about := c.Long
		if about == "" {
			about = c.Short + "."
		}
		fmt.Fprintf(&b, "%s\n", block(about))
		flags := c.LocalFlags()
		if !c.HasParent() {
			b.WriteString("\nFlags of all commands:\n")
		}
		if usages := flags.FlagUsages(); usages != "" {
			fmt.Fprintf(&b, "\n```\n%s```\n", usages)
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", unindent(c.Example))
		}
	})
	return b.String()
}

// block keeps the paragraphs of a help text that are laid out as they are.
func block(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "  ") {
			paragraphs[i] = "```\n" + unindent(p) + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func unindent(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  ")
}
