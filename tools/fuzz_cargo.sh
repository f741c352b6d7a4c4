#!/usr/bin/env bash
# Runs a command of cargo on the fuzz targets, with the flags of cargo-fuzz: fuzz_cargo.sh build. Coverage and sanitizers are
# unstable in Rust; RUSTC_BOOTSTRAP makes the stable toolchain, which has both, accept the flags.
set -euo pipefail
cd "$(dirname "$0")/.."
flags="-Zsanitizer=address -Cpasses=sancov-module --cfg fuzzing"
for each in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$each"
done
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" CARGO_TARGET_DIR="$PWD/target/fuzz"
command=$1
shift
cargo "$command" --quiet --locked --release --manifest-path fuzz/Cargo.toml --target "$(rustc -vV | sed -n 's/^host: //p')" "$@"
