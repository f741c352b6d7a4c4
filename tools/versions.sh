#!/usr/bin/env bash
# Runs the host tests on the release wheel: Python 3.11 with the oldest packages that pyproject.toml allows, Python 3.11, 3.13
# and 3.14 with the newest, and there the demo and the tests on the double of the CUDA driver too. `tools/versions.sh 3.12-newest`
# runs other combinations of that form; with `part` in place of `newest` it runs only the files that depend on the interpreter most.
#
# A Python that pyproject.toml does not name (3.15, and 3.14t, the one without the GIL) may be tried too. Packages that have no
# wheels for it are left out and listed, and their tests skip. What fails there is shown, and is not an error.
#
# Interpreters are python3.11 and so on from PATH, pyenv or uv. $PYTHON311, $PYTHON314t and so on name another one, or the folder
# that has its bin/. A missing interpreter is an error, because a skipped run would pass unnoticed. With SKIP_MISSING=1 the script
# skips it, and its last lines list the skipped runs.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
root=$source/target/versions
: "${UV:=uv}" "${MATURIN:=maturin}"
export JAX_PLATFORMS=cpu
unset PYTHONPATH
tell='import sys, sysconfig; print("%d.%d" % sys.version_info[:2] + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))'

# What a change of Python has broken before.
part=(exchange/test_{matrix_in,matrix_out,types,unwrap,dlpack_in,producer_calls,exchange_api_in,gt_interface_in,moved_memory,torch}.py
    tensor/test_{recycling,labels,leaks,threads,lifetime,faults_threads}.py stencil/test_{annotations,signature,bind,bind_hooks,bind_specs}.py)

# promised VERSION: whether pyproject.toml says that dlfield runs on that Python
promised() { grep -q "Python :: $1\"" "$source/pyproject.toml"; }

# interpreter VERSION: prints the path of that Python
interpreter() {
    local named="PYTHON${1/./}" candidate folder
    folder=${!named:-}
    for candidate in "$folder" "${folder:+$folder/bin/python$1}" "python$1" "${PYTHON:-python3}" \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        # A pyenv shim of a version that is not selected fails here: the name exists, but runs no program.
        if [ -n "$candidate" ] && "$candidate" -c "$tell" 2>/dev/null | grep -qx "$1"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    "$UV" python find --no-project "$1" 2>/dev/null && return
    echo "no Python $1 on this machine: install it, or set $named to its path" >&2
    return 1
}

# requirements PYTHON: prints what the tests need, one a line
requirements() {
    "$1" -c 'import tomllib
read = tomllib.load(open("pyproject.toml", "rb"))
extras, groups = read["project"]["optional-dependencies"], read["dependency-groups"]
print(*read["project"]["dependencies"], *(each for name in ("demo", "xarray", "dask", "mpi") for each in extras[name]), *groups["test"], sep="\n")'
}

# prepare VERSION oldest|newest|part: builds the wheels and installs them with the packages
prepare() {
    local version=$1 packages=$2 python wheels resolution profile venv each
    python=$(interpreter "$version")
    venv=$root/$version-$packages wheels=$root/wheels-$version
    resolution=highest
    [ "$packages" != oldest ] || resolution=lowest-direct
    # One that is only tried is built quickly.
    profile=release
    promised "$version" || profile=checked
    if [ ! -d "$wheels" ]; then
        PYO3_PYTHON=$python "$MATURIN" build --quiet --locked --profile "$profile" --interpreter "$python" --out "$wheels"
        "$python" tools/wheel.py "$wheels"/dlfield-*.whl
        (cd examples/rust_extension &&
            PYO3_PYTHON=$python "$MATURIN" build --quiet --locked --profile checked --features cuda,kinds,peers --interpreter "$python" --out "$wheels")
    fi
    "$UV" venv --quiet --clear --python "$python" "$venv"
    if promised "$version"; then
        "$UV" pip install --quiet --python "$venv" --resolution "$resolution" -r pyproject.toml --extra demo --extra xarray --extra dask --extra mpi --group test
    else
        # DaCe has no wheel, and needs none.
        requirements "$venv/bin/python" | while IFS= read -r each; do
            "$UV" pip install --quiet --python "$venv" --only-binary :all: --no-binary dace "$each" 2>/dev/null </dev/null ||
                echo "NO WHEELS: $each"
        done
    fi
    "$UV" pip install --quiet --python "$venv" --no-deps "$wheels"/*.whl
}

# check VERSION-oldest|newest|part [FOLDER OF THE DOUBLE]: runs the tests in that environment
check() {
    local version=${1%-*} packages=${1#*-} sim=${2:-}
    local files=("$source/tests/py" "$source/README.md" --pyargs dlfield)
    local pytest=(bin/python -m pytest -q --durations=10 -m "not exhaustive" -c "$source/pyproject.toml" --rootdir "$source")
    "$UV" pip list --python "$root/$1" | grep -E '^(apache-tvm-ffi|dace|dask|gt4py|hypothesis|jax|ml[-_]dtypes|mpi4py|mpich|numpy|pytest|ray|torch|xarray) '
    if ! promised "$version"; then
        # With CI the tests accept no missing framework. They might hang.
        unset CI
        pytest=(timeout 600 "${pytest[@]}")
    fi
    [ "$packages" != part ] || files=("${part[@]/#/$source/tests/py/}")
    # Outside the source folder, so that pytest tests the wheel, including its docstrings, and not the source.
    cd "$root/$1"
    "${pytest[@]}" "${files[@]}"
    [ "$packages" = newest ] && promised "$version" && [ -n "$sim" ] || return 0
    # Without the steps of the progress bar.
    bin/python -m dlfield demo 2>&1 | tr '\r' '\n' | grep -v '^   diffusion: '
    (cd "$source" && "$UV" pip install --quiet --python "$root/$1" --group sim)
    DLFIELD_FAKE_CUDA=1 DLFIELD_FAKE_CUDA_DEVICES=1 DLFIELD_FAKE_CUDA_POOLS=1 LD_LIBRARY_PATH=$sim/lib "${pytest[@]}" "$source/tests/py/cuda"
}

rm -rf "$root"
mkdir -p "$root"
[ $# -gt 0 ] || set -- 3.11-oldest 3.11-newest 3.13-newest 3.14-newest
present=() missing=()
for run; do
    if interpreter "${run%-*}" >/dev/null; then present+=("$run"); else missing+=("$run"); fi
done
[ ${#missing[@]} -eq 0 ] || [ "${SKIP_MISSING:-}" = 1 ]

# The tests of one version run while the next one is built. Nearly all of them use one core.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
running=()
for run in "${present[@]}"; do
    # In the background, as the condition of an `if` does not end at its first error.
    prepare "${run%-*}" "${run#*-}" >"$root/$run.log" 2>&1 &
    if wait $!; then check "$run" "${SIM:-}" >>"$root/$run.log" 2>&1 & fi
    running+=($!)
done
failed=()
for i in "${!present[@]}"; do
    run=${present[$i]}
    if wait "${running[$i]}"; then result=passed; else result=failed failed+=("$run"); fi
    printf '\n== Python %s with the %s packages %s (%s s since the start)\n' "${run%-*}" "${run#*-}" "$result" "$SECONDS"
    [ "$result" = failed ] || { grep '^NO WHEELS' "$root/$run.log" || true; tail -n 60 "$root/$run.log"; }
    rm -rf "${root:?}/$run"
done
for run in "${missing[@]}"; do
    printf 'SKIPPED: %s, that Python is not installed\n' "$run"
done
# Last, where they are found.
broken=0
for run in "${failed[@]}"; do
    printf '\n== FAILED: Python %s with the %s packages\n' "${run%-*}" "${run#*-}"
    cat "$root/$run.log"
    if promised "${run%-*}"; then broken=1; else echo "This is not an error, as pyproject.toml does not name Python ${run%-*}."; fi
done
[ $broken -eq 0 ]
