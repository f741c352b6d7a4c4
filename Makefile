# make demo    a GT4Py stencil on memory that dlfield allocated; WITH=torch adds PyTorch (gigabytes)
# make test    every test, with the real frameworks
# make check   what CI runs: formatting, lints, types, documentation, then the tests
# make asan    the tests of pure Rust under AddressSanitizer, with fewer cases for each property
# make miri    those without foreign code and large copies under Miri; needs a nightly toolchain that has it
# make test-sim  the tests of CUDA on a test double of the driver, without a GPU; they are part of make test
# make test-cuda the same on the machine's GPU, with CuPy, PyTorch and JAX on memory there, and the measurements of docs/cuda.md
# make kernels   src/copy/cuda/kernels.ptx from kernels.cu, with NVIDIA's compiler from PyPI
# make bench   measurements next to NumPy, GT4Py and others, written into README.md and docs/
#
# Each sets up .venv by itself. Needs Python 3.11 or newer (PYTHON=...), a Rust toolchain, a C++ compiler.

PYTHON ?= python3
WITH ?=

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml $(wildcard Cargo.lock) pyproject.toml $(shell find src -name '*.rs' -o -name '*.ptx')
EXAMPLE := examples/rust_extension
EXAMPLE_SOURCES := $(EXAMPLE)/Cargo.toml $(EXAMPLE)/pyproject.toml $(wildcard $(EXAMPLE)/src/*.rs)
PIP := "$(BIN)/python" -m pip install
# An active conda environment would make maturin refuse to choose.
DEVELOP := env -u CONDA_PREFIX VIRTUAL_ENV="$(VENV)" "$(BIN)/maturin" develop --release

export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The interpreter that PyO3 builds against, also where cargo is called directly.
export PYO3_PYTHON := $(BIN)/python

ifneq ($(filter-out torch,$(WITH)),)
$(error WITH=$(WITH): the only extra of the demo is torch)
endif

.DELETE_ON_ERROR:
.PHONY: demo test test-sim test-cuda kernels check features asan miri bench

demo: $(VENV)/.demo $(if $(WITH),$(VENV)/.torch)
	@"$(BIN)/python" -m dlfield demo

test: $(VENV)/.test $(VENV)/.example
	cargo test --features ndarray
	cargo test --features python --doc
	$(MAKE) test-sim
	cargo run --quiet --example no_python --features ndarray
	"$(BIN)/python" -m pytest

# First the machine as it is, then two on the double: with pools of memory, and without.
SIM := $(CURDIR)/target/cuda_sim
test-sim: $(VENV)/.test $(VENV)/.example
	CARGO_TARGET_DIR="$(SIM)" cargo test --manifest-path tests/cuda_sim/Cargo.toml
	cargo test --features cuda,ndarray --test cuda
	CARGO_TARGET_DIR="$(SIM)" tests/cuda_sim/link.sh "$(SIM)/lib"
	@for pools in 1 0; do \
	  DLFIELD_FAKE_CUDA=1 DLFIELD_FAKE_CUDA_POOLS=$$pools LD_LIBRARY_PATH="$(SIM)/lib" \
	    cargo test --features cuda,ndarray --test cuda && \
	  DLFIELD_FAKE_CUDA=1 DLFIELD_FAKE_CUDA_POOLS=$$pools LD_LIBRARY_PATH="$(SIM)/lib" \
	    "$(BIN)/python" -m pytest tests/py/cuda || exit 1; \
	done

test-cuda: $(VENV)/.gpu $(VENV)/.example
	cargo test --features cuda,ndarray --test cuda
	DLFIELD_REAL_CUDA=1 "$(BIN)/python" -m pytest tests/py/cuda
	"$(BIN)/python" benches/py cuda --write

# NVRTC 12 is the last that knows GPUs older than those of 2018.
kernels: $(BIN)/pip
	@$(PIP) nvidia-cuda-nvrtc-cu12==12.9.86
	"$(BIN)/python" src/copy/cuda/compile.py

check: $(VENV)/.check features
	cargo fmt --check
	cd $(EXAMPLE) && cargo fmt --check
	cd tests/cuda_sim && cargo fmt --check
	CARGO_TARGET_DIR="$(SIM)" cargo clippy --manifest-path tests/cuda_sim/Cargo.toml --all-targets -- -D warnings
	cd tests/cuda_sim/cudart && cargo fmt --check
	CARGO_TARGET_DIR="$(SIM)" cargo clippy --manifest-path tests/cuda_sim/cudart/Cargo.toml -- -D warnings
	cd $(EXAMPLE) && cargo clippy --all-features -- -D warnings
	"$(BIN)/ruff" check
	"$(BIN)/ruff" format --check
	"$(BIN)/mypy"
	"$(BIN)/python" -m mypy.stubtest dlfield._native --mypy-config-file pyproject.toml \
	  --allowlist tests/py/stubtest-allowlist.txt --ignore-unused-allowlist
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features
	$(MAKE) test

# Without features, each alone, all together; without `python` there is no PyO3 in the tree.
features: $(BIN)/pip
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --features ndarray -- -D warnings
	cargo clippy --all-targets --features cuda -- -D warnings
	cargo clippy --all-targets --features python -- -D warnings
	cargo clippy --all-targets --all-features -- -D warnings
	@! cargo tree --edges normal --prefix none --features ndarray | grep -E '^(pyo3|numpy|cudarc)'

# Sanitizers are not stable in Rust, but the toolchain has what they need at run time: the variable lets it take the flag.
# Memory that cannot be had is what some tests are about.
asan:
	ASAN_OPTIONS=allocator_may_return_null=1 RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" PROPTEST_CASES=$${PROPTEST_CASES:-16} \
	  cargo test --features ndarray --tests --target "$$(rustc -vV | sed -n 's/^host: //p')"

# What Miri cannot run: files of the system, and properties over hundreds of megabytes.
miri:
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
	  MIRIFLAGS="-Zmiri-permissive-provenance" cargo +nightly miri test --features ndarray --lib && \
	  MIRIFLAGS="-Zmiri-permissive-provenance" PROPTEST_CASES=4 cargo +nightly miri test --features ndarray --test it -- \
	    arrays owners managed; \
	else \
	  echo "no Miri in the nightly toolchain: rustup +nightly component add miri"; exit 1; \
	fi

bench: $(VENV)/.bench $(VENV)/.example
	"$(BIN)/python" benches/py --write

# The example, with what the tests call and what `make bench` measures beside.
$(VENV)/.example: $(SOURCES) $(EXAMPLE_SOURCES) | $(VENV)/.test
	@echo "Building the example extension"
	@cd $(EXAMPLE) && $(DEVELOP) --features cuda,kinds,peers
	@touch $@

# One stamp for each set of packages. The larger ones contain the smaller, so they refresh those stamps too.
$(VENV)/.demo: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield and installing GT4Py, JAX and matplotlib (minutes the first time)"
	@$(DEVELOP) --extras demo
	@touch $@

$(VENV)/.test: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield and installing every framework the tests use (PyTorch is gigabytes)"
	@$(DEVELOP) --extras demo,test
	@touch $(VENV)/.demo $@

$(VENV)/.bench: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield and installing every framework and the peers (PyTorch is gigabytes)"
	@$(DEVELOP) --extras demo,test,bench
	@touch $(VENV)/.demo $(VENV)/.test $@

$(VENV)/.gpu: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield and installing every framework for CUDA (gigabytes)"
	@$(DEVELOP) --extras demo,test,gpu
	@touch $(VENV)/.demo $(VENV)/.test $@

$(VENV)/.check: $(SOURCES) | $(BIN)/maturin
	@echo "Building dlfield and installing every framework and the linters (PyTorch is gigabytes)"
	@$(DEVELOP) --extras demo,test,dev
	@touch $(VENV)/.demo $(VENV)/.test $@

$(VENV)/.torch: | $(BIN)/maturin
	@echo "Installing PyTorch (gigabytes)"
	@$(PIP) torch
	@touch $@

$(BIN)/maturin: | $(BIN)/pip
	@command -v cargo >/dev/null || { echo "cargo not found: install Rust with rustup, https://rustup.rs"; exit 1; }
	@$(PIP) "maturin>=1.9,<2"

$(BIN)/pip:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) not found: name one with make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$("$(PYTHON)" -V), dlfield needs 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@"$(PYTHON)" -m venv "$(VENV)"
