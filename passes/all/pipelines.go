package all

import "github.com/aton-project/aton/passes"

// pipelines are sequences with names of their own.
var pipelines = []passes.Named{
	{Name: "cleanup", Doc: "remove what is computed twice or in vain", Text: "fixpoint(cse,dce)"},
}

// orders are held by every named pipeline, which a test checks.
var orders = []passes.Order{}
