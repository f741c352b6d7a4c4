#!/usr/bin/env bash
# Runs the host tests on the release wheel: Python 3.11 with the oldest packages that pyproject.toml allows, Python 3.11 and
# 3.13 with the newest. `tools/versions.sh 3.12-newest` runs other combinations of that form.
#
# Interpreters are python3.11 and so on from PATH, pyenv or uv, or $PYTHON311 and so on. A missing interpreter is an error,
# because a skipped run would pass unnoticed. With SKIP_MISSING=1 the script skips it, and its last lines list
# the skipped runs.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
root=$source/target/versions
: "${UV:=uv}" "${MATURIN:=maturin}"
export JAX_PLATFORMS=cpu
unset PYTHONPATH

# interpreter VERSION: prints the path of that Python
interpreter() {
    local named="PYTHON${1/./}" candidate
    for candidate in "${!named:-}" "python$1" "${PYTHON:-python3}" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        # A pyenv shim of a version that is not selected fails here: the name exists, but runs no program.
        if [ -n "$candidate" ] && "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    "$UV" python find --no-project "$1" 2>/dev/null && return
    echo "no Python $1 on this machine: install it, or set $named to its path" >&2
    return 1
}

# prepare VERSION oldest|newest: builds the wheels and installs them with the packages
prepare() {
    local version=$1 packages=$2 python wheels resolution venv
    python=$(interpreter "$version")
    venv=$root/$version-$packages wheels=$root/wheels-$version
    resolution=highest
    [ "$packages" = newest ] || resolution=lowest-direct
    if [ ! -d "$wheels" ]; then
        PYO3_PYTHON=$python "$MATURIN" build --quiet --locked --release --interpreter "$python" --out "$wheels"
        "$python" tools/wheel.py "$wheels"/dlfield-*.whl
        (cd examples/rust_extension &&
            PYO3_PYTHON=$python "$MATURIN" build --quiet --locked --profile checked --features cuda,kinds,peers --interpreter "$python" --out "$wheels")
    fi
    "$UV" venv --quiet --clear --python "$python" "$venv"
    "$UV" pip install --quiet --python "$venv" --resolution "$resolution" -r pyproject.toml --extra demo --extra xarray --extra dask --extra mpi --group test
    "$UV" pip install --quiet --python "$venv" --no-deps "$wheels"/*.whl
}

# tests VERSION-oldest|newest: runs the tests in that environment
tests() {
    "$UV" pip list --python "$root/$1" | grep -E '^(apache-tvm-ffi|dace|dask|gt4py|hypothesis|jax|ml[-_]dtypes|mpi4py|mpich|numpy|pytest|ray|torch|xarray) '
    # Runs outside the source folder, so that pytest tests the wheel, including its docstrings, and not the source.
    (cd "$root/$1" && bin/python -m pytest -q --durations=10 -m "not exhaustive" -c "$source/pyproject.toml" --rootdir "$source" "$source/tests/py" "$source/README.md" --pyargs dlfield)
}

rm -rf "$root"
mkdir -p "$root"
[ $# -gt 0 ] || set -- 3.11-oldest 3.11-newest 3.13-newest
present=() missing=()
for wanted; do
    if interpreter "${wanted%-*}" >/dev/null; then present+=("$wanted"); else missing+=("$wanted"); fi
done
[ ${#missing[@]} -eq 0 ] || [ "${SKIP_MISSING:-}" = 1 ]

# The tests of one version run while the next one is built. Nearly all of them use one core.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
running=()
for wanted in "${present[@]}"; do
    prepare "${wanted%-*}" "${wanted#*-}"
    tests "$wanted" >"$root/$wanted.log" 2>&1 &
    running+=($!)
done
failed=()
for i in "${!present[@]}"; do
    wanted=${present[$i]}
    if wait "${running[$i]}"; then result=passed; else result=failed failed+=("$wanted"); fi
    printf '\n== Python %s with the %s packages %s (%s s since the start)\n' "${wanted%-*}" "${wanted#*-}" "$result" "$SECONDS"
    [ "$result" = failed ] || tail -n 40 "$root/$wanted.log"
    rm -rf "${root:?}/$wanted"
done
for wanted in "${missing[@]}"; do
    printf 'SKIPPED: %s, that Python is not installed\n' "$wanted"
done
# Last, where they are found.
for wanted in "${failed[@]}"; do
    printf '\n== FAILED: Python %s with the %s packages\n' "${wanted%-*}" "${wanted#*-}"
    cat "$root/$wanted.log"
done
[ ${#failed[@]} -eq 0 ]
