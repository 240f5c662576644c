// Package limited is the process of one model of a batch: it runs a command of aton within a limit of memory, and tells what came of it.
package limited

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/aton-project/aton/tools/lib/cli"
)

// Report is what a process tells of its command, as JSON on standard output.
type Report struct {
	// Exit is the exit status of the command, Problems what it found, Output what it wrote to standard output.
	Exit     int           `json:"exit"`
	Problems []cli.Problem `json:"problems"`
	Output   string        `json:"output,omitempty"`
	// PeakMemory is the most memory that the process had, in bytes; 0 where the system does not tell.
	PeakMemory uint64 `json:"peak_memory"`
}

// Exit is the exit status of a process that passes its limit of memory.
const Exit = 8

// Serve is what the process of one model does: it sets the limit of memory, runs the command and writes a [Report]. When standard input
// ends, the process that started it is gone, and it ends too.
func Serve(memory uint64, stdin io.Reader, stdout io.Writer, command func() Report) error {
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(1)
	}()
	limitMemory(memory, func() {
		fmt.Fprintln(os.Stderr, "out of memory: the limit is passed")
		os.Exit(Exit)
	})
	report := command()
	report.PeakMemory = peak()
	return json.NewEncoder(stdout).Encode(report)
}
