# What there is to do here, and how. `make help` lists it. A target has its line of that list behind ##.
GO     ?= go
T      ?= 30s
FILTER ?=
SHARED ?= ../shared
PYTHON ?= .venv/bin/python
# the modules of the workspace (go.work): the library, and the commands and tests of tools
ALL    = ./... ./tools/...
# these two are modules outside of the workspace, since they need many others
ALONE  = GOWORK=off $(GO)
# two at a time: the tests are built for small machines
GOFLAGS_TEST ?= -p 2

CONFORMANCE = $(GO) run ./tools/judge/conformance --shared $(SHARED) --python $(PYTHON) \
	$(if $(SET),--set $(SET)) $(if $(CASES),--cases $(CASES)) $(if $(FILTER),--filter '$(FILTER)') $(if $(OPSET),--opset $(OPSET)) \
	$(if $(FORMAT),--input-format $(FORMAT)) $(if $(UPDATE),--update) $(if $(QUICK),--no-check) $(if $(LARGE),--large)

.PHONY: all help build test race cover prove prove-exports judge-test pick cases mutate lit cut update gen proto node-tests node-rewrites damaged kept-tests check-gen fuzz bench bench-cost passcheck eager-cases conformance conformance-edges edges gradients operators quantized conformance-models conformance-old follow versions demo tutorial ptxas gpu-coverage gpu-report gpu-launches gpu-routes fixtures bench-export onnxfiles fuzz-programs platforms batch-test metrics vuln setup wheel python-test dist dist-check gallery web browser-test explore-pictures beside-netron lint clean

all: build lint test ## build, lint and test

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

build: ## the commands, into bin/
	@mkdir -p bin
	$(GO) build -o bin/ $(ALL)

test: ## all tests; needs only Go
	$(GO) vet $(ALL)
	$(GO) test $(GOFLAGS_TEST) $(ALL)

# those that start goroutines or share tables between them, and the tests that convert many models at a time
RACE ?= ./ssa ./dialects/... ./backend/interp ./codegen/gpu/sim ./codegen/gpu/driver ./tools/lib/cli ./tools/judge/damage ./tools/lib/cases ./tools/lib/batch ./tools/cmd/aton-batch/cmd
race: ## the race detector on packages with goroutines; RACE="./... ./tools/..." for all
	$(GO) test -race $(GOFLAGS_TEST) $(RACE)

# the statements of all packages that the tests of any package reach; FLOOR is what must be reached
FLOOR ?= 0
cover: ## the part of the statements that the tests reach, by package; fails below FLOOR
	@mkdir -p out
	$(GO) test $(GOFLAGS_TEST) -coverpkg=./...,./tools/... -coverprofile=out/cover.profile $(ALL) > out/cover.log || { grep -v 'coverage:' out/cover.log; exit 1; }
	$(GO) run ./tools/analyzers/cover -floor $(FLOOR) out/cover.profile

# chooses the cases of testdata/cases.tar.gz and nodes.tar.gz by what they reach. PICK are folders of cases: out/cases-made and those of ../shared
PICK ?= out/cases-made $(wildcard out/cases)
pick: .venv/ready ## choose the cases that the tests run, from out/cases-made and out/cases
	@mkdir -p out
	$(GO) build -cover -covermode=atomic -coverpkg=./...,./tools/... -o out/pick ./tools/lib/cases/pick
	$(PYTHON) tools/judge/nodetests/generate.py out/nodetests
	GOCOVERDIR=out out/pick -out testdata/nodes -formats model.onnx -largest 6000 -least 0.01 -opsets 7,9,11,13,17,20,23,26 out/nodetests
	GOCOVERDIR=out out/pick -out testdata/cases $(PICK)

# what is proved, and what the table says: tools/judge/prove/README.md. PART=K/N proves one of N parts of the rules, chosen by the text K
prove: ## proves rewrite rules, steps between opsets and laws of sizes with z3, and writes the table; PART=K/N for a part, without the table
	ATON_NEED_Z3=1 $(GO) test ./tools/judge/prove -count=1
	$(GO) run ./tools/judge/prove/aton-prove $(if $(PART),-part $(PART) -mutants 20 -sizes 200 -variants 4 -limit 500ms -time 2m30s,-write tools/judge/prove)

# conversions that are proved; exports.py makes those of PyTorch's and transformers' models
prove-exports: ## proves conversions of models with z3, and writes the table of tools/judge/prove/README.md
	$(PYTHON) tools/judge/prove/exports.py out/prove
	$(GO) run ./tools/judge/prove/aton-prove -exports tools/judge/prove/exports.tsv -write tools/judge/prove

judge-test: .venv/ready ## the tests of what the Python scripts judge by
	$(PYTHON) -m unittest discover -s tools/judge/python

lit: ## the text tests; FILTER=passes/cse for some of them
	$(GO) test ./tools/judge/e2e -run 'TestLit/$(FILTER)'

cut: ## cut the conversions of all cases below CASES in two at a text, behind every pass, and compare the files
	$(GO) test ./tools/judge/e2e -run TestCut -count=1 -timeout 2h -cut.every=1 -cut.cases=$(abspath $(CASES))

update: ## rewrite the AUTOCHECK blocks of text tests; FILTER as in lit
	$(GO) test ./tools/judge/e2e -run 'TestLit/$(FILTER)' -update -count=1

gen: ## write the generated files anew
	$(GO) generate $(ALL)

# a table of registers and spills of every kind of kernel, assembled for two processors; PTXAS=FILE names the assembler
PTXAS ?= ptxas
ptxas: ## registers and spills of every kind of kernel; PTXAS=FILE names the assembler
	ATON_PTXAS=$(PTXAS) $(GO) test ./codegen/gpu/ptx ./codegen/gpu/exec -run TestPTXAS -v -count=1

# which traced cases run on the device without a host step, and which operators have host steps; RUN=1 runs them in the simulator too
gpu-coverage: ## traced cases without a host step on a GPU, and what is on the host; CASES=DIR, FILTER, RUN=1 (half an hour)
	$(GO) run ./tools/measure/gpucoverage --cases $(or $(CASES),out/cases) $(if $(FILTER),--filter '$(FILTER)') $(if $(RUN),--run)

# what kernels and models cost by count, into codegen/gpu/README.md; PTXAS=FILE tells registers anew, else those of the last time count
gpu-report: ## bytes, instructions, occupancy and rooflines of GPU kernels, into codegen/gpu/README.md (minutes); PTXAS=FILE
	$(if $(filter file,$(origin PTXAS)),,ATON_PTXAS=$(PTXAS)) $(GO) run ./tools/measure/gpureport --write codegen/gpu/README.md

gpu-launches: ## how many launches the exported programs (.pt2) of a folder have, a layer and in all; MODELS=DIR, made by tools/measure/bench/peers.py
	$(GO) run ./tools/measure/gpucoverage --layers $(or $(MODELS),out/peers) --filter '$(or $(FILTER),^(llama|qwen3|gemma3|gpt2|bert|t5|vit|whisper)(\.(prefill|decode|encoder|decoder))?$$)' --opsets 18,23

# every kernel of the emitters' tables from our PTX and from that of every llc on PATH, bit by bit (minutes)
gpu-routes: ## every kernel from our PTX and that of every llc on PATH (minutes)
	@mkdir -p out
	ATON_ROUTES=all ATON_NEED_LLVM=1 $(GO) test ./codegen/gpu/exec ./codegen/gpu/ptx -v -count=1 -timeout 30m > out/gpu-routes.log || \
		{ grep -A40 -e '--- FAIL' out/gpu-routes.log; exit 1; }
	@grep 'routes:' out/gpu-routes.log

# the interpreter on the tests that the onnx package has for its operators, with inferred types compared on the way
node-tests: .venv/ready ## ONNX's node tests in the interpreter
	$(PYTHON) tools/judge/nodetests/generate.py out/nodetests
	ATON_NODE_TESTS=$(CURDIR)/out/nodetests $(GO) test ./backend/interp -run 'TestNodes$$' -count=1 -v > out/nodetests.log || \
		{ grep -A20 -e '--- FAIL' out/nodetests.log | head -100; exit 1; }
	@sed -n '/passed, .* left out/,/^--- /p' out/nodetests.log | grep -v '^--- '

# ONNX's node tests exported to other opsets and run again in onnxruntime; PEER=1 has onnx.version_converter beside it
node-rewrites: .venv/ready ## ONNX's node tests at other opsets in onnxruntime; PEER=1 beside onnx.version_converter
	$(PYTHON) tools/judge/nodetests/generate.py out/nodetests
	rm -f out/nodetests/as-they-are.json
	$(PYTHON) tools/judge/nodetests/rewrite.py out/nodetests $(if $(PEER),--peer)

# damaged ONNX models: what onnx.checker, onnxruntime and aton refuse; fails if aton takes what onnx.checker refuses, or panics.
# SEED and PER_KIND choose others; MUTANTS=N changes every fourth node test N times besides
SEED     ?= 1
PER_KIND ?= 25
MUTANTS  ?= 2
damaged: .venv/ready ## damaged ONNX files beside onnx.checker and onnxruntime; SEED, PER_KIND, MUTANTS
	$(PYTHON) tools/judge/nodetests/generate.py out/nodetests
	rm -rf out/damaged
	$(PYTHON) tools/judge/damage/damage.py out/damaged out/nodetests --seed $(SEED) --per-kind $(PER_KIND)
	$(GO) run ./tools/judge/damage out/damaged
	$(GO) run ./tools/judge/damage -mutants $(MUTANTS) -seed $(SEED) -every 4 out/nodetests

# changed programs and random ones through all commands, in child processes: panics, time, memory, files that are not valid, and numbers
# that differ. SEED chooses others; KINDS=random,code,... some kinds. What was run is in tools/judge/fuzzprog/README.md
KINDS ?=
fuzz-programs: ## changed and random programs through the whole line; T=1h, SEED, KINDS, PROGRAMS, SMALLEST (size of an axis)
	$(GO) run ./tools/judge/fuzzprog -t $(T) $(if $(PROGRAMS),-n $(PROGRAMS)) $(if $(SMALLEST),-smallest $(SMALLEST)) -seed $(SEED) -out out/fuzz-programs $(if $(KINDS),-kinds $(KINDS))

# a build for this machine is made twice; those for others are static, without the CUDA driver. qemu-user runs the ones for Linux
PLATFORMS ?= linux/386 linux/arm64 linux/s390x windows/amd64 darwin/arm64
platforms: ## builds for PLATFORMS, and what they write under qemu-user: the same bytes everywhere
	tools/judge/platforms/run.sh out/platforms $(PLATFORMS)

# The cases (CASES=DIR, or those that make conformance has unpacked) by three workers, one of which is killed every second, beside a run
# without kills; then how many models a second one process does, and 1, 2 and 4 workers, on every NTH case. Results: tools/lib/batch/README.md
NTH ?= 10
batch-test: build ## aton batch on all cases, workers killed every second; throughput. CASES=DIR NTH=10
	ATON_CASES=$(abspath $(or $(CASES),out/cases)) ATON_NTH=$(NTH) $(GO) test -tags data ./tools/cmd/aton-batch/cmd -run 'TestCases|TestThroughput' -v -count=1 -timeout 60m

# 300 models in each round, with workers, the server and the batch killed, workers suspended and disks full at random. Disks are full only
# where the user may mount a tmpfs. The last result is in tools/lib/batch/README.md
STORM ?= 30m
batch-storm: ## aton batch while workers, server, batch and disks fail at random; STORM=30m
	ATON_STORM=$(STORM) $(GO) test ./tools/lib/batch ./tools/cmd/aton-batch/cmd -run 'TestStorm$$|TestLostMessages$$' -v -count=1 -timeout 3h

# the interpreter on the models that a conformance run kept: KEPT=DIR CASES=DIR
kept-tests: ## the interpreter on models that a conformance run kept; KEPT=DIR CASES=DIR
	ATON_KEPT=$(KEPT) ATON_CASES=$(CASES) $(GO) test -tags data ./backend/interp -run TestExported -count=1

# needs protoc and protoc-gen-go; the format changes once in years
proto: ## the Go code of the ONNX format; needs protoc
	protoc -I. --go_out=. --go_opt=paths=source_relative backend/onnxfile/onnxpb/onnx.proto

check-gen: gen ## fail if generated files are not those committed
	@test -z "$$(git status --porcelain)" || { git status --short; echo "generated files differ from what is committed: make gen"; exit 1; }

fuzz: ## every fuzz target for T=30s
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/\/[^/]*_test.go:func / /' | sort -u | \
	while read -r dir name; do \
		echo "$$dir $$name"; $(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(T) "$$dir" || exit 1; \
	done

bench: ## the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem $(GOFLAGS_TEST) $(ALL)

bench-cost: ## time of the default pipeline on programs of 1,000 to 1,000,000 operators
	$(GO) run ./tools/measure/bench/cost

# every pass of the default pipeline, before and after, on random inputs of the cases in CASES
passcheck: ## every pass before and after on random inputs; CASES=DIR FILTER=RE
	$(GO) run ./tools/judge/passcheck -cases $(CASES) $(if $(FILTER),-filter '$(FILTER)')

eager-cases: ## the eager evaluator beside PyTorch's results; CASES=DIR FILTER=RE
	$(GO) run ./tools/judge/eagercheck -cases $(CASES) -least 99.5 $(if $(FILTER),-v -filter '$(FILTER)')

# The steps of docs/custom-operators.md that need Python: TORCH has PyTorch, onnx and onnxruntime, and for the step with a function of Python
# onnxruntime-extensions. The files go to out/tutorial.
tutorial: build ## docs/custom-operators.md from end to end; TORCH=PYTHON has torch, onnx, onnxruntime
	rm -rf out/tutorial
	mkdir -p out/tutorial
	cp docs/custom_operators/*.py docs/custom_operators/my.rules out/tutorial
	cd out/tutorial && $(TORCH) model.py && $(TORCH) functions.py && \
		../../bin/aton export model.pt2 -o model.onnx --rules my.rules && \
		../../bin/aton export model.pt2 -o carrying.onnx --rules my.rules --functions functions.onnx && \
		$(TORCH) run.py

# Variables: SET=made (those of make cases; the default without ../shared) CASES=DIR FILTER=RE OPSET=N FORMAT=pt2 UPDATE=1 (writes the list of expected failures) QUICK=1 (no onnx.checker) LARGE=1 (of the models also the large ones)
conformance: build .venv/ready ## the score on programs of PyTorch (make cases); FILTER, OPSET, FORMAT=pt2, QUICK=1, UPDATE=1
	$(CONFORMANCE)

# changes packages in small ways, one at a time, and lists those that no test notices: N of each package, chosen by SEED.
# The last result is in tools/analyzers/mutate/README.md. Specialize is left out for its size. SEED chooses others.
N ?= 40
MUTATE ?= ./ssa $(filter-out ./passes/specialize ./passes/passtest ./passes/all,$(patsubst %/,./%,$(wildcard passes/*/))) ./dialects/onnx
mutate: ## small changes that no test notices; N of each package in MUTATE (hours)
	$(GO) run ./tools/analyzers/mutate -n $(N) -seed $(SEED) -tests ./lit-tests,./passes/all,./passes,./backend/interp,./frontend/jit,./tools/judge/e2e,./tools/lib/cases $(MUTATE)

# cases for a checkout that has no ../shared: operator samples, modules, indexing and scripts. TORCH is a Python with PyTorch and expecttest
TORCH ?= python3
cases: ## make the cases of make conformance; TORCH=PYTHON has PyTorch (half an hour)
	rm -rf out/cases-made
	$(TORCH) tools/judge/conformance/make_cases.py --out out/cases-made --pt2
	touch out/cases-made/.complete

# programs on the edges of numbers, from testdata/edges.tar.gz: OPSETS=7,9,13 for a table of several opsets
conformance-edges: build .venv/ready ## programs on the edges of numbers, and with gradients; OPSETS=7,9,13
	$(CONFORMANCE) --set edges $(if $(OPSETS),--opsets $(OPSETS))

# the archive of these programs, made by PyTorch: PYTHON=FILE names one that has it
edges: ## make the archive of these programs; PYTHON=FILE has PyTorch
	$(PYTHON) tools/maker/edges/edges.py --out out/edges
	$(PYTHON) tools/maker/randprog/pack.py out/edges testdata/edges.tar.gz --count 1000

gradients: ## make the archive of scripts that ask for gradients; PYTHON=FILE has PyTorch
	$(PYTHON) tools/maker/gradients/gradients.py --out out/gradients
	$(PYTHON) tools/maker/randprog/pack.py out/gradients testdata/gradients.tar.gz --count 1000

operators: ## make the archive of one program an operator that no other suite has; PYTHON=FILE has PyTorch and transformers; FILTER=RE makes some and keeps the others
	@mkdir -p out
	rm -rf out/operators
	$(PYTHON) tools/maker/operators/operators.py --out out/operators $(if $(FILTER),--filter '$(FILTER)')
	$(GO) build -cover -covermode=atomic -coverpkg=./...,./tools/... -o out/pick ./tools/lib/cases/pick
	GOCOVERDIR=out out/pick -out testdata/operators -largest 100000 -least 1e9 $(if $(FILTER),-only '$(FILTER)') out/operators

# PYTHON has torchao beside PyTorch
quantized: ## make the archive of programs that torchao quantized; PYTHON=FILE has torchao
	rm -rf out/quantized
	$(PYTHON) tools/maker/torchao/torchao_table.py --cases out/quantized
	cp out/quantized/quantized.tsv testdata/quantized.tsv
	rm out/quantized/quantized.tsv
	$(PYTHON) tools/maker/randprog/pack.py out/quantized testdata/quantized.tar.gz --count 1000

# The newest onnx, onnxruntime, PyTorch, torchvision and transformers, what they changed, and the suites that are short; the report is
# docs/follow.md. TORCHPY names a Python that has the frameworks already; INSTALL=1 also writes what make gen reads
follow: ## what the newest releases changed, into docs/follow.md; TORCHPY=PYTHON has PyTorch, CASES=DIR, INSTALL=1
	python3 tools/judge/follow/follow.py $(if $(TORCHPY),--torch $(TORCHPY)) $(if $(CASES),--cases $(CASES)) $(if $(FILTER),--filter '$(FILTER)') $(if $(INSTALL),--install)

versions: build ## exports in several releases of onnxruntime, into docs/versions.md; ONLY=RE, CASES=DIR, FILTER=RE
	python3 tools/judge/follow/versions.py --write $(if $(ONLY),--only '$(ONLY)') $(if $(CASES),--cases $(CASES)) $(if $(FILTER),--filter '$(FILTER)')

# whole networks, made by the system's PyTorch (Debian: apt-get install python3-torch python3-torchvision)
conformance-models: build .venv/ready ## whole networks; LARGE=1 for the large ones too
	$(CONFORMANCE) --set models

# the other suites as an older PyTorch saves them
conformance-old: build .venv/ready ## the other suites as an older PyTorch saves them
	$(CONFORMANCE) --set old

# gigabytes: the Python tests and the gallery need PyTorch and transformers
setup: .venv/ready ## the Python environment .venv of wheel, python-test, gallery and the judges
	.venv/bin/pip install --quiet --disable-pip-version-check -r tools/cmd/python/requirements.txt

.venv/ready: tools/judge/conformance/requirements.txt
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# from a checkout with nothing but Go: an archive that PyTorch saved becomes ONNX, the file is run in aton's own
# interpreter, its outputs are compared with PyTorch's, and its graph is shown. MODEL=FILE INPUT=SPEC DATA=FILE for others
MODEL ?= testdata/fixtures/torch2.15/convnet.script.pt
INPUT ?= x:f32[N,3,18,18]
DATA  ?= $(MODEL:.pt=.safetensors)
demo: build ## export, verify and show a model, with nothing but Go; MODEL=FILE INPUT=SPEC DATA=FILE
	@mkdir -p out
	bin/aton export $(MODEL) -o out/demo.onnx --input '$(INPUT)' --verbose
	bin/aton verify out/demo.onnx --data $(DATA)

# the archives and expected outputs of `make test`; each PYTHONS has another PyTorch
PYTHONS ?= /usr/bin/python3
fixtures: ## make the archives that the tests read; PYTHONS have PyTorch
	set -e; for p in $(PYTHONS); do $$p tools/maker/fixtures/make.py testdata/fixtures; done

# AlexNet beside cp and torch.onnx: PYTHONS have PyTorch, the first one torchvision too
bench-export: build ## AlexNet beside cp and torch.onnx; PYTHONS have PyTorch
	python3 tools/measure/bench/alexnet.py $(foreach p,$(PYTHONS),--torch $(p))

# raw ONNX files of torch.onnx, optimized by aton, onnxsim and onnxslim: nodes, seconds, numbers (hours for all; FILTER=RE).
# PYTHON has torch 2.15, torchvision, onnx, onnxruntime, onnxscript, onnxsim, onnxslim
onnxfiles: build ## ONNX files optimized by aton, onnxsim and onnxslim (hours); FILTER=RE
	$(PYTHON) tools/measure/nodecount/onnxmodels.py out/onnxmodels $(if $(FILTER),--filter '$(FILTER)')
	$(PYTHON) tools/measure/nodecount/onnxfiles.py out/onnxmodels --markdown $(if $(FILTER),--filter '$(FILTER)')

web: ## the page that converts models in the browser, into out/web; needs npm
	tools/cmd/wasm/build.sh out/web

# needs Chromium; CHROMIUM=FILE names it where it is not on PATH, FIREFOX=FILE the other browser. The pages are compared with the pictures of
# tools/lib/explore/browser/testdata/pictures; those that differ are kept in out/different
BROWSER = mkdir -p out/different && tools/lib/explore/browser/axe.sh out/axe && cd tools/lib/explore/browser && $(ALONE) vet ./... && \
	ATON_WEB=$(CURDIR)/out/web ATON_AXE=$(CURDIR)/out/axe/axe.min.js ATON_DIFFERENT=$(CURDIR)/out/different
browser-test: web ## the explorer in Chromium and Firefox, without a window
	$(BROWSER) $(ALONE) test -count=1 -timeout 20m ./...

explore-pictures: web ## the pictures of docs/explore.md and those that the test compares with, made by that test
	$(BROWSER) ATON_SCREENSHOTS=$(CURDIR)/docs/explore ATON_PICTURES=$(CURDIR)/tools/lib/explore/browser/testdata/pictures $(ALONE) test -count=1 -timeout 20m ./...

# needs a PYTHON with pip
beside-netron: ## the explorer's first view of ten models beside Netron's, into out/beside, for a person to look at
	mkdir -p out/beside && PYTHON=$(PYTHON) tools/lib/explore/browser/netron.sh out/netron && cd tools/lib/explore/browser && \
	ATON_NETRON=$(CURDIR)/out/netron ATON_BESIDE=$(CURDIR)/out/beside $(ALONE) test -count=1 -timeout 20m -run TestBesideNetron .

lint: ## gofmt, go vet, staticcheck and our own analyzers
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted: $$files"; exit 1; }
	$(GO) vet -tags data $(ALL)
	$(GO) tool staticcheck -tags data $(ALL)
	$(GO) run ./tools/analyzers/cmd/atonvet $(ALL)
	cd tools/cmd/release && $(ALONE) vet ./...
	cd tools/lib/explore/browser && $(ALONE) vet ./...

metrics: ## figures of the source: lines by hand by room, the longest function, in how many lists operators are named
	@$(GO) run ./tools/analyzers/metrics

# DB is a copy of the database for machines that do not reach it: https://vuln.go.dev/vulndb.zip, or a folder with what is in that
vuln: ## known vulnerabilities of what the programs call; asks vuln.go.dev, or DB=vulndb.zip
	@db="$(DB)"; case "$$db" in *.zip) rm -rf out/vulndb; mkdir -p out/vulndb; unzip -q "$$db" -d out/vulndb || exit; db=out/vulndb;; esac; \
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 $${db:+-db "file://$$(realpath "$$db")"} $(ALL)

# what the programs are made of, in the format CycloneDX, with licences
sbom: ## the list of all modules with their licences, into out/sbom.json; asks the proxy of Go modules once
	@mkdir -p out
	cd tools && $(ALONE) run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 mod -licenses -json -output $(CURDIR)/out/sbom.json

# TARGET=linux/arm64 (GOOS/GOARCH) is for another machine. BUILDER is a Python with the packages build and hatchling
TARGET  ?=
BUILDER ?= $(PYTHON)
# where a command runs in another folder; a name without a folder stands on PATH
BUILDER_AT = $(if $(findstring /,$(BUILDER)),$(abspath $(BUILDER)),$(BUILDER))
wheel: ## the Python package with the commands inside, into out/dist; make setup has what it needs, or BUILDER=PYTHON
	@$(BUILDER) -c 'import build, hatchling' 2>/dev/null || { echo "$(BUILDER) lacks the packages build and hatchling: run make setup, or name a Python that has them with BUILDER"; exit 1; }
	ATON_TARGET=$(TARGET) $(BUILDER) -m build --wheel --no-isolation -o out/dist tools/cmd/python

python-test: build ## the tests of the Python package; BUILDER has PyTorch, onnxruntime, pytest and mypy
	cd tools/cmd/python && $(BUILDER_AT) -m mypy && ATON_BINARY=$(CURDIR)/bin/aton PYTHONPATH=$(CURDIR)/tools/cmd/python/src $(BUILDER_AT) -m pytest -q

# a release is made of a commit: binaries, archives, Debian packages, wheels of all systems. BUILDER as for wheel
dist: ## the files of a release, into out/dist; BUILDER has build and hatchling
	$(ALONE) -C tools/cmd/release run . -python $(BUILDER_AT)

dist-check: ## a release twice, byte by byte, and every binary started; FRESH=1 without the build cache
	cd tools/cmd/release && $(ALONE) vet ./... && $(ALONE) test ./...
	tools/cmd/release/check.sh $(BUILDER)

# the examples of docs/gallery, one after the other, and the table of their results
gallery: build ## docs/gallery in onnxruntime beside PyTorch; BUILDER has torch, torchvision, transformers, onnxruntime
	ATON_BINARY=$(CURDIR)/bin/aton PYTHONPATH=$(CURDIR)/tools/cmd/python/src $(BUILDER) docs/gallery/run.py

clean: ## remove bin/ and out/
	rm -rf bin out
