//go:build unix

package cmd

import (
	"fmt"
	"os"
	"syscall"
)

// become puts another program in the place of this one, with its arguments behind its name. It comes back only if that fails.
func become(program string, args, environment []string) (status int, done bool) {
	err := syscall.Exec(program, append([]string{program}, args...), environment)
	fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	return 1, true
}
