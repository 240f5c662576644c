package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The shell is offered the words that a flag takes, and for a list those for the part at hand.
func TestCompletion(t *testing.T) {
	var colour, list string
	c := &cobra.Command{Use: "paint", RunE: func(*cobra.Command, []string) error { return nil }}
	Choice(c, &colour, "colour", []string{"red", "green"}, "the colour")
	c.Flags().StringVar(&list, "steps", "", "the steps")
	CompleteWith(c, "steps", List([]string{"wash", "dry"}, ",("))
	for typed, want := range map[string][]string{
		"--colour ": {"red", "green"}, "--steps ": {"wash", "dry"}, "--steps wash,twice(d": {"wash,twice(wash", "wash,twice(dry"},
	} {
		var stdout bytes.Buffer
		flag, word, _ := strings.Cut(typed, " ")
		if status := Run(c, []string{"__complete", flag, word}, strings.NewReader(""), &stdout, io.Discard); status != Done {
			t.Fatal(status)
		}
		var have []string
		for line := range strings.Lines(stdout.String()) {
			if !strings.HasPrefix(line, ":") { // the directive
				have = append(have, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: offered %q, want %q", typed, have, want)
		}
	}
}

// A word that a flag does not take is told with those that it takes.
func TestChoice(t *testing.T) {
	for args, want := range map[string]string{"": "red", "--colour green": "green", "--colour GREEN": "green", "--colour gren": `--colour must be red or green, not "gren"`} {
		var colour string
		var stderr bytes.Buffer
		c := &cobra.Command{Use: "paint", RunE: func(*cobra.Command, []string) error { return nil }}
		Choice(c, &colour, "colour", []string{"red", "green"}, "the colour")
		switch status := Run(c, strings.Fields(args), strings.NewReader(""), io.Discard, &stderr); {
		case status == Done && colour != want:
			t.Errorf("%s: got %s, want %s", args, colour, want)
		case status != Done && !strings.HasPrefix(stderr.String(), "error: "+want+"\n"):
			t.Errorf("%s: said %s", args, stderr.String())
		}
	}
}
