#!/bin/sh
# Builds the doubles and puts libcuda.so.1, libcuda.so and libfakecudart.so into OUTDIR, for LD_LIBRARY_PATH.
# In a folder of its own: cargo puts target/debug on the loader's path, where it would hide a real driver.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

# build FOLDER NAME: prints where the library is
build() {
    cargo build --quiet --manifest-path "$1/Cargo.toml"
    target=${CARGO_TARGET_DIR:-$1/target}
    echo "$(cd "$target" && pwd)/debug/lib$2.so"
}

driver=$(build "$here" fakecuda)
runtime=$(build "$here/cudart" fakecudart)
ln -sf "$driver" "$out/libcuda.so.1"
ln -sf "$driver" "$out/libcuda.so"
ln -sf "$runtime" "$out/libfakecudart.so"
echo "$out"
