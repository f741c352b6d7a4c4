#!/usr/bin/env bash
# Runs clippy with no features, the features that make sense alone, all features, and on the Python module: `make features`.
# Then it compiles everything with the oldest Rust that Cargo.toml names. Without `python` the dependency tree has no PyO3. On Linux an extension with argument types alone is built, too: its linker leaves
# no symbol undefined, and it exports no module but its own.
set -euo pipefail
cd "$(dirname "$0")/.."

clippy() {
    echo "cargo clippy $*"
    cargo clippy --quiet "$@" -- -D warnings
}

# A program chooses CUDA's version.
for features in "" ndarray cuda,cudarc/cuda-12000,cudarc/dynamic-loading python; do
    clippy --features "$features"
done
clippy --all-targets
clippy --all-targets --features cuda,ndarray
clippy --all-targets --all-features
clippy --package dlfield-python
! cargo tree --edges normal --prefix none --features ndarray | grep -E '^(pyo3|numpy|cudarc)'
! cargo tree --edges normal --prefix none --features python | grep -E '^cudarc'

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if cargo "+$oldest" --version >/dev/null 2>&1 || rustup --quiet toolchain install --profile minimal "$oldest"; then
    echo "cargo +$oldest check"
    cargo "+$oldest" check --quiet --workspace --all-features
else
    echo "NOT CHECKED with Rust $oldest: it is not installed, and could not be"
fi

echo "The feature abi3 of pyo3 is one error, which says what to do"
said=$(cargo check --features python,pyo3/abi3-py311 2>&1 | grep '^error' || true)
case "$said" in
'error: dlfield: the feature `abi3` of `pyo3` is enabled;'*'error: could not compile `dlfield` (lib) due to 1 previous error'*) ;;
*) echo "$said" && exit 1 ;;
esac

[ "$(uname)" = Linux ] || exit 0
cargo rustc --quiet --manifest-path tests/extension/Cargo.toml --features dlfield -- -D warnings -C link-arg=-Wl,-z,defs
modules=$(nm --dynamic --defined-only "$CARGO_TARGET_DIR/debug/libextension.so" | sed -n 's/.* \(PyInit_.*\)/\1/p')
[ "$modules" = PyInit_extension ] || { echo "tests/extension exports $modules, not PyInit_extension alone" && exit 1; }
