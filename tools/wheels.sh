#!/usr/bin/env bash
# Builds the wheels of a release, for each of PYTHONS on each of PROCESSORS: wheels.sh BIN FOLDER. None of them has to be installed:
# Zig links against the glibc of 2018, for both processors, and maturin knows how each Python was built.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${PYTHONS:=3.11 3.12 3.13 3.14}" "${PROCESSORS:=x86_64 aarch64}"
bin=$1 folder=$2
"$bin/uv" pip install --quiet --python "$bin/python" "ziglang>=0.15"
unset PYO3_PYTHON
export PATH=$bin:$PATH
for processor in $PROCESSORS; do
    rustup --quiet target add "$processor-unknown-linux-gnu"
    echo "maturin build --target $processor-unknown-linux-gnu --interpreter $PYTHONS"
    # shellcheck disable=SC2086
    maturin build --quiet --locked --release --zig --compatibility manylinux_2_28 --target "$processor-unknown-linux-gnu" \
        --interpreter $PYTHONS --out "$folder"
done
"$bin/python" tools/wheel.py "$folder"/*.whl
