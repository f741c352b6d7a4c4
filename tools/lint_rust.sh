#!/usr/bin/env bash
# The style of all crates, clippy where `make features` does not run it, and the documentation: a part of `make lint`.
# lint_rust.sh FOLDER: where the test double of the CUDA driver is built.
set -euo pipefail
cd "$(dirname "$0")/.."
example=examples/rust_extension
for crate in . "$example" tests/extension tests/cuda_sim tests/cuda_sim/cudart fuzz; do
    (cd "$crate" && cargo fmt --all --check)
done
CARGO_TARGET_DIR=$1 cargo clippy --quiet --manifest-path tests/cuda_sim/Cargo.toml --all-targets -- -D warnings
CARGO_TARGET_DIR=$1 cargo clippy --quiet --manifest-path tests/cuda_sim/cudart/Cargo.toml -- -D warnings
(cd "$example" && cargo clippy --quiet --all-features -- -D warnings)
tools/fuzz_cargo.sh clippy -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --all-features
