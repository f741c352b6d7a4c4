#!/usr/bin/env bash
# Checks the crates for other processors and systems, WebAssembly, other CUDA versions and free-threaded Python: `make platforms`.
# Nothing is linked, so no other system, Python or CUDA is needed: PyO3 reads the description of a Python. Each description has
# its own folder, because with another one PyO3 is compiled again. rustup installs missing targets.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=(aarch64-unknown-linux-gnu x86_64-apple-darwin x86_64-pc-windows-msvc)
wasm=wasm32-unknown-unknown
rustup --quiet target add "${targets[@]}" "$wasm"

clippy() {
    echo "cargo clippy $*"
    cargo clippy --quiet "$@" -- -D warnings
}

# describe FOLDER [LINES]: describes a Python to PyO3, and builds in that folder from now on.
describe() {
    export CARGO_TARGET_DIR=$PWD/target/$1 PYO3_CONFIG_FILE=$PWD/target/$1/pyo3.config
    mkdir -p "$CARGO_TARGET_DIR"
    printf '%s\n' implementation=CPython version=3.14 shared=true pointer_width=64 suppress_build_script_link_lines=true \
        "${@:2}" >"$PYO3_CONFIG_FILE.new"
    # Cargo compiles PyO3 again if the file is newer.
    cmp --silent "$PYO3_CONFIG_FILE.new" "$PYO3_CONFIG_FILE" || cp "$PYO3_CONFIG_FILE.new" "$PYO3_CONFIG_FILE"
}

describe platforms
for target in "${targets[@]}"; do
    clippy --workspace --all-features --target "$target"
done
clippy --target "$wasm"
clippy --target "$wasm" --features ndarray
clippy --features cuda,ndarray,cudarc/cuda-12080,cudarc/dynamic-linking
clippy --features cuda,ndarray,cudarc/cuda-13000,cudarc/dynamic-loading

describe free-threaded build_flags=Py_GIL_DISABLED
clippy --workspace --all-features
clippy --manifest-path examples/rust_extension/Cargo.toml --features cuda,kinds,peers
