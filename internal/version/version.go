// Package version says which version of aton this is.
package version

import (
	"runtime/debug"
	"strings"
	"sync"
)

// The paths of the modules of this repository: the library and the commands.
const (
	modulePath = "github.com/aton-project/aton"
	toolsPath  = modulePath + "/tools"
)

// release is the version of a released build, which the linker sets (tools/cmd/release): the last tag and the distance of the commit from it.
var release string

// String returns the version of the release. In other builds it is what the Go command recorded for this module, or the commit that
// was built, or "(unknown)" if nothing was recorded.
var String = sync.OnceValue(func() string {
	if release != "" {
		return release
	}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return recorded(b)
})

func recorded(b *debug.BuildInfo) string {
	if b.Main.Path != modulePath && b.Main.Path != toolsPath { // a program that uses the package
		for _, d := range b.Deps {
			if d.Path == modulePath {
				return d.Version
			}
		}
		return "(unknown)"
	}
	out := b.Main.Version
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(out, s.Value[:min(12, len(s.Value))]) {
			out += " " + s.Value
		}
	}
	return out
}
