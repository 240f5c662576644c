package cli

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aton-project/aton/docs/diagnostics"
)

// The parts of a SARIF log that are written: OASIS, Static Analysis Results Interchange Format Version 2.1.0, section 3. Lines
// and columns count from 1.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Artifacts   []sarifArtifact   `json:"artifacts"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
		Help             sarifText `json:"help"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
	}
	sarifArtifact struct {
		Location sarifPlace `json:"location"`
	}
	sarifPlace struct {
		URI string `json:"uri"`
	}
	sarifResult struct {
		RuleID     string          `json:"ruleId"`
		RuleIndex  int             `json:"ruleIndex"`
		Level      string          `json:"level"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations"`
		Related    []sarifLocation `json:"relatedLocations,omitempty"`
		Properties map[string]any  `json:"properties,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Message  *sarifText     `json:"message,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifPlace   `json:"artifactLocation"`
		Region   *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// WriteSARIF writes problems with a model as a SARIF log of a version of the program. A problem without a line of the user's program is one of the model's
// file. The same problems give the same bytes.
func WriteSARIF(w io.Writer, version, model string, problems []Problem, successful bool) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "aton", Version: version, Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{successful}},
		Artifacts:   []sarifArtifact{{sarifPlace{fileURI(model)}}},
		Results:     []sarifResult{},
		ColumnKind:  "unicodeCodePoints", // as Python counts
	}
	driver := &run.Tool.Driver
	for _, p := range problems {
		i := slices.IndexFunc(driver.Rules, func(r sarifRule) bool { return r.ID == p.ID })
		if i < 0 {
			i = len(driver.Rules)
			page, _ := diagnostics.Page(p.ID)
			driver.Rules = append(driver.Rules, sarifRule{p.ID, sarifText{Text: diagnostics.Title(p.ID)}, sarifText{page, page}})
		}
		r := sarifResult{RuleID: p.ID, RuleIndex: i, Level: p.Level, Message: sarifText{Text: sentence(p)}}
		at := sarifLocation{Physical: sarifPhysical{Artifact: sarifPlace{fileURI(model)}}}
		if p.File != "" {
			at.Physical.Artifact.URI = fileURI(p.File)
		}
		if p.Line > 0 {
			at.Physical.Region = &sarifRegion{p.Line, p.Column + 1}
		}
		if p.Scope != "" {
			at.Logical = []sarifLogical{{p.Scope, "module"}}
		}
		r.Locations = []sarifLocation{at}
		for _, f := range p.Frames {
			about := "a call on the way"
			if f.Function != "" {
				about = "in " + Printable(f.Function)
			}
			r.Related = append(r.Related, sarifLocation{Physical: sarifPhysical{Artifact: sarifPlace{fileURI(f.File)}, Region: &sarifRegion{max(f.Line, 1), f.Column + 1}}, Message: &sarifText{Text: about}})
		}
		if p.Op != "" {
			r.Properties = map[string]any{"operator": p.Op}
		}
		run.Results = append(run.Results, r)
	}
	return EncodeJSON(w, sarifLog{"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "2.1.0", []sarifRun{run}}, true)
}

// sentence is what a problem says, without its place.
func sentence(p Problem) string {
	s := p.Message
	if p.Op != "" {
		s = p.Op + ": " + s
	}
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return Printable(s) // who shows a log decodes its strings
}

// fileURI is a path as a URI: relative where the path is.
func fileURI(path string) string {
	if path == "-" {
		path = "<stdin>"
	}
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") { // a drive
			u.Path = "/" + u.Path
		}
	}
	return u.String()
}
