//go:build !linux

package driver

import "fmt"

func load() (*api, error) {
	return nil, fmt.Errorf("cuda: %w (only Linux is supported)", ErrNoDriver)
}
