package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// noticesName is the file with the licences of the modules that the binaries hold.
const noticesName = "THIRD-PARTY-LICENSES"

// components are the modules in the binaries of a target, by what the linker recorded in them.
type components struct {
	target target
	goes   string // the version of Go
	main   string // the path of aton's module
	top    string
	parts  map[string]*debug.Module
}

// componentsOf reads the binaries in a folder.
func componentsOf(top, bin string, t target) (*components, error) {
	c := &components{target: t, top: top, parts: map[string]*debug.Module{}}
	for _, name := range commands {
		info, err := buildinfo.ReadFile(filepath.Join(bin, t.exe(name)))
		if err != nil {
			return nil, err
		}
		c.goes, c.main = info.GoVersion, strings.TrimSuffix(info.Main.Path, "/tools") // the module of the commands is a part of the library's repository
		for _, m := range info.Deps {
			if m.Path == c.main {
				continue
			}
			if m.Replace != nil {
				m = m.Replace
			}
			c.parts[m.Path] = m
		}
	}
	return c, nil
}

// list is the CycloneDX list of the components.
func (c *components) list(version string, at time.Time) ([]byte, error) {
	bom := cdx.NewBOM()
	self := cdx.Component{
		BOMRef: purl(c.main, version), Type: cdx.ComponentTypeApplication, Name: c.main, Version: version, PackageURL: purl(c.main, version),
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Properties: &[]cdx.Property{
			{Name: "cdx:gomod:build:env:GOOS", Value: c.target.os},
			{Name: "cdx:gomod:build:env:GOARCH", Value: c.target.arch},
		},
	}
	bom.Metadata = &cdx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &self}
	std := cdx.Component{BOMRef: purl("std", c.goes), Type: cdx.ComponentTypeLibrary, Name: "std", Version: c.goes, PackageURL: purl("std", c.goes), Scope: cdx.ScopeRequired}
	parts := []cdx.Component{std}
	for _, path := range sortedKeys(c.parts) {
		m := c.parts[path]
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s has no sum", path)
		}
		parts = append(parts, cdx.Component{BOMRef: purl(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			PackageURL: purl(m.Path, m.Version), Scope: cdx.ScopeRequired,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}}) // of the module as go.sum has it
	}
	bom.Components = &parts
	var refs []string
	for _, p := range parts {
		refs = append(refs, p.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	var b bytes.Buffer
	err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return b.Bytes(), err
}

// purl is the package URL of a module.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// notices are the licences of the components and of Go, as their authors demand.
func (c *components) notices() ([]byte, error) {
	var b bytes.Buffer
	root, err := goOutput(c.top, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "Go %s\n\n%s\n", c.goes, license)
	for _, path := range sortedKeys(c.parts) {
		m := c.parts[path]
		folder, err := goOutput(c.top, "list", "-m", "-f", "{{.Dir}}", path)
		if err != nil {
			return nil, err
		}
		found := 0
		for _, pattern := range []string{"LICEN[SC]E*", "UNLICENSE*", "COPYING*", "NOTICE*"} {
			names, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are right
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					return nil, err
				}
				found++
				fmt.Fprintf(&b, "%s\n%s %s, %s\n\n%s\n", strings.Repeat("-", 80), m.Path, m.Version, filepath.Base(name), text)
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("%s has no licence that may be passed on", path)
		}
	}
	return b.Bytes(), nil
}

func goOutput(dir string, args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Dir, c.Env = dir, append(os.Environ(), workspace)
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
