# What there is to do here, and how. `make test` is what continuous integration runs first.
GO     ?= go
T      ?= 30s
FILTER ?=
SHARED ?= ../shared
PYTHON ?= .venv/bin/python
# two at a time: the tests are built for small machines
GOFLAGS_TEST ?= -p 2

CONFORMANCE = $(GO) run ./tools/conformance --shared $(SHARED) --python $(PYTHON) \
	$(if $(CASES),--cases $(CASES)) $(if $(FILTER),--filter '$(FILTER)') $(if $(OPSET),--opset $(OPSET)) \
	$(if $(FORMAT),--input-format $(FORMAT)) $(if $(UPDATE),--update) $(if $(QUICK),--no-check) $(if $(LARGE),--large)

.PHONY: all build test race lit update gen proto node-tests node-rewrites damaged kept-tests check-gen fuzz bench bench-cost passcheck conformance conformance-edges edges conformance-models conformance-old demo ptxas gpu-routes fixtures bench-export onnxfiles lint clean

all: build lint test

build:
	@mkdir -p bin
	$(GO) build -o bin/ ./...

test:
	$(GO) vet ./...
	$(GO) test $(GOFLAGS_TEST) ./...

race:
	$(GO) test -race $(GOFLAGS_TEST) ./...

# make lit FILTER=passes/cse
lit:
	$(GO) test ./lit-tests -run 'TestLit/$(FILTER)'

# rewrites the AUTOCHECK blocks; checks that people wrote stay
update:
	$(GO) test ./lit-tests -run 'TestLit/$(FILTER)' -update -count=1

gen:
	$(GO) generate ./...

# a table of registers and spills of every kind of kernel, assembled for two processors; PTXAS=FILE names the assembler
PTXAS ?= ptxas
ptxas:
	ATON_PTXAS=$(PTXAS) $(GO) test ./codegen/gpu/ptx ./codegen/gpu/exec -run TestPTXAS -v -count=1

# every kernel of the emitters' tables from its IR, from our PTX and from that of every llc on PATH, bit by bit (minutes)
gpu-routes:
	@mkdir -p out
	ATON_ROUTES=all ATON_NEED_LLVM=1 $(GO) test ./codegen/gpu/exec ./codegen/gpu/ptx -v -count=1 -timeout 30m > out/gpu-routes.log || \
		{ grep -A40 -e '--- FAIL' out/gpu-routes.log; exit 1; }
	@grep 'routes:' out/gpu-routes.log

# the interpreter on the tests that the onnx package has for its operators, with inferred types compared on the way
node-tests: .venv/ready
	$(PYTHON) tools/nodetests/generate.py out/nodetests
	ATON_NODE_TESTS=$(CURDIR)/out/nodetests $(GO) test -tags data ./backend/interp -run 'TestNodes$$' -count=1 -v > out/nodetests.log || \
		{ grep -A20 -e '--- FAIL' out/nodetests.log | head -100; exit 1; }
	@sed -n '/passed, .* left out/,/^--- /p' out/nodetests.log | grep -v '^--- '

# ONNX's node tests exported to other opsets and run again in onnxruntime; PEER=1 has onnx.version_converter beside it
node-rewrites: .venv/ready
	$(PYTHON) tools/nodetests/generate.py out/nodetests
	rm -f out/nodetests/as-they-are.json
	$(PYTHON) tools/nodetests/rewrite.py out/nodetests $(if $(PEER),--peer)

# damaged ONNX models: what onnx.checker, onnxruntime and aton refuse; fails if aton takes what onnx.checker refuses, or panics.
# SEED and PER_KIND choose others; MUTANTS=N changes every fourth node test N times besides
SEED     ?= 1
PER_KIND ?= 25
MUTANTS  ?= 2
damaged: .venv/ready
	$(PYTHON) tools/nodetests/generate.py out/nodetests
	rm -rf out/damaged
	$(PYTHON) tools/damage/damage.py out/damaged out/nodetests --seed $(SEED) --per-kind $(PER_KIND)
	$(GO) run ./tools/damage out/damaged
	$(GO) run ./tools/damage -mutants $(MUTANTS) -seed $(SEED) -every 4 out/nodetests

# the interpreter on the models that a conformance run kept: KEPT=DIR CASES=DIR
kept-tests:
	ATON_KEPT=$(KEPT) ATON_CASES=$(CASES) $(GO) test -tags data ./backend/interp -run TestExported -count=1

# needs protoc and protoc-gen-go; the format changes once in years
proto:
	protoc -I. --go_out=. --go_opt=paths=source_relative backend/onnxfile/onnxpb/onnx.proto

check-gen: gen
	@test -z "$$(git status --porcelain)" || { git status --short; echo "generated files differ from what is committed: make gen"; exit 1; }

# every fuzz target for T
fuzz:
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/\/[^/]*_test.go:func / /' | sort -u | \
	while read -r dir name; do \
		echo "$$dir $$name"; $(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(T) "$$dir" || exit 1; \
	done

bench:
	$(GO) test -run '^$$' -bench . -benchmem $(GOFLAGS_TEST) ./...

# what the default pipeline costs on programs of 1,000 to 1,000,000 operators
bench-cost:
	$(GO) run ./tools/bench/cost

# every pass of the default pipeline, before and after, on random inputs of the cases in CASES
passcheck:
	$(GO) run ./tools/passcheck -cases $(CASES) $(if $(FILTER),-filter '$(FILTER)')

# Variables: CASES=DIR FILTER=RE OPSET=N FORMAT=pt2 UPDATE=1 (writes the list of expected failures) QUICK=1 (no onnx.checker) LARGE=1 (of the models also the large ones)
conformance: build .venv/ready
	$(CONFORMANCE)

# programs on the edges of numbers, from testdata/edges.tar.gz: OPSETS=7,9,13 for a table of several opsets
conformance-edges: build .venv/ready
	$(CONFORMANCE) --set edges $(if $(OPSETS),--opsets $(OPSETS))

# the archive of these programs, made by PyTorch: PYTHON=FILE names one that has it
edges:
	$(PYTHON) tools/edges/edges.py --harness $(SHARED)/conformance --out out/edges
	$(PYTHON) tools/randprog/pack.py out/edges testdata/edges.tar.gz --count 1000

# whole networks, made by the system's PyTorch (Debian: apt-get install python3-torch python3-torchvision)
conformance-models: build .venv/ready
	$(CONFORMANCE) --set models

# the other suites as an older PyTorch saves them
conformance-old: build .venv/ready
	$(CONFORMANCE) --set old

.venv/ready: tools/conformance/requirements.txt
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# from a checkout with nothing but Go: an archive that PyTorch saved becomes ONNX, the file is run in aton's own
# interpreter, its outputs are compared with PyTorch's, and its graph is shown. MODEL=FILE INPUT=SPEC DATA=FILE for others
MODEL ?= testdata/fixtures/torch2.15/convnet.script.pt
INPUT ?= x:f32[N,3,18,18]
DATA  ?= $(MODEL:.pt=.safetensors)
demo: build
	@mkdir -p out
	bin/aton export $(MODEL) -o out/demo.onnx --input '$(INPUT)' --verbose
	bin/aton verify out/demo.onnx --data $(DATA)

# the archives and expected outputs of `make test`; each PYTHONS has another PyTorch
PYTHONS ?= /usr/bin/python3
fixtures:
	set -e; for p in $(PYTHONS); do $$p tools/fixtures/make.py testdata/fixtures; done

# AlexNet beside cp and torch.onnx: PYTHONS have PyTorch, the first one torchvision too
bench-export: build
	python3 tools/bench/alexnet.py $(foreach p,$(PYTHONS),--torch $(p))

# raw ONNX files of torch.onnx, optimized by aton, onnxsim and onnxslim: nodes, seconds, numbers (hours for all; FILTER=RE).
# PYTHON has torch 2.15, torchvision, onnx, onnxruntime, onnxscript, onnxsim, onnxslim
onnxfiles: build
	$(PYTHON) tools/nodecount/onnxmodels.py out/onnxmodels $(if $(FILTER),--filter '$(FILTER)')
	$(PYTHON) tools/nodecount/onnxfiles.py out/onnxmodels --markdown $(if $(FILTER),--filter '$(FILTER)')

lint:
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted: $$files"; exit 1; }
	$(GO) vet -tags data ./...
	$(GO) tool staticcheck -tags data ./...
	$(GO) run ./tools/analyzers/cmd/atonvet ./...

clean:
	rm -rf bin out
