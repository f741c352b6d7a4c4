#!/usr/bin/env bash
# Runs the CUDA tests on a GPU of this machine, after the versions that a bug report needs: test_cuda.sh BIN. The tests need a
# driver and one GPU, and no compiler of CUDA. At the end it lists what failed; skipped tests are listed with their reasons.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=$1
export DLFIELD_REAL_CUDA=1
unset DLFIELD_FAKE_CUDA

"$bin/python" - <<'EOF' || exit 1
import dlfield as dl
if reason := dl.cuda.unavailable_reason():
    raise SystemExit(f"make test-cuda needs a GPU: {reason}\nwithout one, make test-sim runs these tests on a driver double")
EOF

echo "== Versions, for a bug report"
git log -1 --format='commit   %h of %cs' 2>/dev/null
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | sed 's/^/GPU      /'
"$bin/python" -m dlfield info
"$bin/uv" pip list --quiet --python "$bin/python" 2>/dev/null | grep -E '^(cuda-|cupy-|jax-cuda|numba|nvidia-cuda-(nvrtc|runtime) )'

failed=()
output=$(mktemp)
trap 'rm -f "$output"' EXIT

echo "== Tests in Rust"
# The output of tests that pass says which of them did nothing.
if ! cargo test --quiet --features cuda,ndarray --test cuda -- --show-output >"$output" 2>&1; then
    failed+=("the tests in Rust")
    cat "$output"
fi
grep -E '^test result:' "$output"
grep -E '^skipped: ' "$output" | sort | uniq -c

echo "== Tests in Python"
"$bin/python" -m pytest -q -rfEs --durations=10 --numprocesses=4 --dist=loadfile -m "not exhaustive" tests/py/cuda || failed+=("the tests in Python")

if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "All CUDA tests passed"
