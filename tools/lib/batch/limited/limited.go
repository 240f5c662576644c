// Package limited is the process that does the models of a batch, one after the other: it runs commands of aton within a limit of memory, and
// tells what came of each.
package limited

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/aton-project/aton/tools/lib/cli"
)

// Request is what a process is asked to do, as JSON on standard input: the words of a command.
type Request struct {
	Words []string `json:"words"`
}

// Report is what a process tells of a command, as a line of JSON on standard output.
type Report struct {
	// Exit is the exit status of the command, Problems what it found, Output what it wrote to standard output.
	Exit     int           `json:"exit"`
	Problems []cli.Problem `json:"problems"`
	Output   string        `json:"output,omitempty"`
	// PeakMemory is the most memory that the process had while it ran the command, in bytes; 0 where the system does not tell.
	PeakMemory uint64 `json:"peak_memory"`
	// Last says that the process does nothing more.
	Last bool `json:"last,omitempty"`
}

// Exit is the exit status of a process that passes its limit of memory.
const Exit = 8

// muchMemory is the peak of a command after which its process ends: what it leaves behind, such as files that are mapped, is no other model's.
const muchMemory = 96 << 20

// Serve is what the process does: it sets the limit of memory, and runs a command for each [Request], which it answers with a [Report]. It
// ends after so many requests as most says, and before that after one of which something may be left: much memory, goroutines, the
// state in which a defect was found. When standard input ends, the process that started it is gone or needs it no more, and it ends too.
func Serve(memory uint64, most int, stdin io.Reader, stdout io.Writer, command func(words []string) Report) error {
	requests := make(chan []string)
	go func() {
		for from := json.NewDecoder(stdin); ; {
			var r Request
			if from.Decode(&r) != nil {
				os.Exit(1)
			}
			requests <- r.Words
		}
	}()
	limitMemory(memory, func() {
		fmt.Fprintln(os.Stderr, "out of memory: the limit is passed")
		os.Exit(Exit)
	})
	for n := 1; ; n++ {
		words := <-requests
		forgetPeak()
		before := runtime.NumGoroutine()
		report := command(words)
		report.PeakMemory = peak()
		report.Last = n >= most || report.PeakMemory > muchMemory || runtime.NumGoroutine() > before ||
			slices.ContainsFunc(report.Problems, func(p cli.Problem) bool { return p.ID == "internal" })
		if err := json.NewEncoder(stdout).Encode(report); err != nil || report.Last {
			return err
		}
	}
}
