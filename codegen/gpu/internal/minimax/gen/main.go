// Command gen writes the coefficients of package approx to standard output.
package main

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/internal/minimax"
)

func main() { fmt.Print(minimax.Source()) }
