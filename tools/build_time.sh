#!/usr/bin/env bash
# Measures cold builds of tests/extension, each in an empty folder, with rust-numpy and with dlfield: seconds of CPU, crates, bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
manifest=tests/extension/Cargo.toml
export CARGO_TARGET_DIR=$PWD/target/build-time
cargo fetch --quiet --manifest-path "$manifest"
for types in rust-numpy dlfield; do
    rm -rf "$CARGO_TARGET_DIR"
    TIMEFORMAT="$types: %U s user, %S s system"
    time cargo build --quiet --release --jobs 2 --manifest-path "$manifest" --features "$types"
    crates=$(cargo tree --edges normal,build --prefix none --no-dedupe --manifest-path "$manifest" --features "$types" | sort -u | wc -l)
    echo "$crates crates, $(wc -c <"$CARGO_TARGET_DIR/release/libextension.so") bytes"
done
rm -rf "$CARGO_TARGET_DIR"
