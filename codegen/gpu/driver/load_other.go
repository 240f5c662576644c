//go:build !linux || !(amd64 || arm64) || nocuda

package driver

import "fmt"

func load() (*api, error) {
	return nil, fmt.Errorf("cuda: %w (this build of aton loads none: take one for Linux on x86-64 or ARM64 without the tag nocuda)", ErrNoDriver)
}
