//go:build noqueue

package cmd

import "github.com/spf13/cobra"

// many are the commands for many models, which this build does not have.
func many() []*cobra.Command { return nil }
