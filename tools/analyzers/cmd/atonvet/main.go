// Atonvet runs the project's analyzers on Go packages: go run ./tools/analyzers/cmd/atonvet ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/aton-project/aton/tools/analyzers"
)

func main() { multichecker.Main(analyzers.All()...) }
