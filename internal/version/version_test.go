package version

import (
	"runtime/debug"
	"testing"
)

func TestRecorded(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a command of this repository", debug.BuildInfo{Main: debug.Module{Path: toolsPath, Version: "(devel)"}, Settings: revision}, "(devel) 0123456789abcdef"},
		{"a pseudo-version", debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v0.0.0-20260101000000-0123456789ab"}, Settings: revision}, "v0.0.0-20260101000000-0123456789ab"},
		{"another program", debug.BuildInfo{Main: debug.Module{Path: "example.com/x", Version: "v3.0.0"}, Deps: []*debug.Module{{Path: modulePath, Version: "v1.2.3"}}, Settings: revision}, "v1.2.3"},
		{"a program of other modules", debug.BuildInfo{Main: debug.Module{Path: "example.com/x"}}, "(unknown)"},
	} {
		if got := recorded(&c.info); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
