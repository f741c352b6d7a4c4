#!/usr/bin/env bash
# Runs part of the Python tests on a module without private API of CPython, which is what free-threaded Python gets:
# portable.sh BIN [ARGUMENTS OF PYTEST]. The module is built beside the one in the environment of BIN.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1
shift
folder=$PWD/target/portable
tests=(exchange/test_{matrix_in,types,unwrap,dlpack_in,exchange_api_in,gt_interface_in,moved_memory,torch}.py
    tensor/test_{recycling,labels,leaks,threads}.py stencil/test_{signature,bind,bind_hooks,bind_specs}.py)
rm -rf "$folder/wheels" "$folder/python"
RUSTFLAGS="--cfg dlfield_portable" CARGO_TARGET_DIR=$folder "$bin/maturin" build --quiet --locked --profile checked \
    --interpreter "$bin/python" --out "$folder/wheels"
"$bin/python" tools/wheel.py "$folder"/wheels/*.whl
"$bin/uv" pip install --quiet --python "$bin/python" --no-deps --target "$folder/python" "$folder"/wheels/*.whl
PYTHONPATH=$folder/python "$bin/python" -m pytest "$@" "${tests[@]/#/tests/py/}"
