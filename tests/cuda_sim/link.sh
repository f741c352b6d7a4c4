#!/bin/sh
# Builds the double and puts libcuda.so.1 and libcuda.so into OUTDIR, for LD_LIBRARY_PATH.
# In a folder of its own: cargo puts target/debug on the loader's path, where it would hide a real driver.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
cargo build --quiet --manifest-path "$here/Cargo.toml"
target=${CARGO_TARGET_DIR:-$here/target}
library=$(cd "$target" && pwd)/debug/libfakecuda.so
ln -sf "$library" "$out/libcuda.so.1"
ln -sf "$library" "$out/libcuda.so"
echo "$out"
