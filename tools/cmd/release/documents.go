package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/aton-project/aton/passes/all"
	opt "github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	aton "github.com/aton-project/aton/tools/cmd/aton/cmd"
)

// documents are the completion scripts of both commands, in completions/, and a manual page for each of their commands, in man/man1/.
func documents(version string, at time.Time) ([]file, error) {
	var out []file
	for _, root := range []*cobra.Command{aton.New(), opt.New(all.Set)} {
		root.DisableAutoGenTag = true
		for _, shell := range []struct {
			name  string
			write func(io.Writer) error
		}{
			{root.Name() + ".bash", func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
			{"_" + root.Name(), root.GenZshCompletion},
			{root.Name() + ".fish", func(w io.Writer) error { return root.GenFishCompletion(w, true) }},
			{root.Name() + ".ps1", root.GenPowerShellCompletionWithDesc},
		} {
			var b bytes.Buffer
			if err := shell.write(&b); err != nil {
				return nil, fmt.Errorf("%s: %w", shell.name, err)
			}
			out = append(out, file{"completions/" + shell.name, 0o644, b.Bytes()})
		}
		pages, err := manual(root, &doc.GenManHeader{Section: "1", Date: &at, Source: root.Name() + " " + version, Manual: "aton"})
		if err != nil {
			return nil, err
		}
		out = append(out, pages...)
	}
	return out, nil
}

// manual makes the page of a command, and those of the commands below it.
func manual(c *cobra.Command, header *doc.GenManHeader) ([]file, error) {
	var b bytes.Buffer
	h := *header // GenMan writes the title into it
	if err := doc.GenMan(c, &h, &b); err != nil {
		return nil, err
	}
	name := bytes.ReplaceAll([]byte(c.CommandPath()), []byte(" "), []byte("-"))
	out := []file{{"man/man1/" + string(name) + ".1", 0o644, b.Bytes()}}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		pages, err := manual(sub, header)
		if err != nil {
			return nil, err
		}
		out = append(out, pages...)
	}
	return out, nil
}
