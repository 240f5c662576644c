//go:build !unix

package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// become runs another program until it ends, and gives its exit status.
func become(program string, args, environment []string) (status int, done bool) {
	c := exec.Command(program, args...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), true
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return 1, true
	}
	return 0, true
}
