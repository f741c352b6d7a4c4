#!/usr/bin/env bash
# The tests with threads on a Python without the GIL, under ThreadSanitizer, which sees what the interpreter does, too:
#
#   tools/sanitizers/free_threaded.sh SOURCES PACKAGES
#
# SOURCES is the unpacked source of CPython 3.14 or newer; PACKAGES has NumPy, pytest and the other packages of the tests for a Python
# without the GIL of that version. Builds both in SOURCES/tsan, in ten minutes. Programs and modules share one runtime, that of rustc:
# a sanitizer must be in the program once, and that of an older gcc does not start on a kernel with many random bits in its addresses.
set -euo pipefail
cd "$(dirname "$0")/../.."
sources=$(realpath "$1") packages=$(realpath "$2") made=$(realpath "$1")/tsan
runtime=$(echo "$(rustc --print target-libdir)"/librustc-*_rt.tsan.a)
mkdir -p "$made"

# Only objects are instrumented, as the linker would add the runtime of gcc.
cat >"$made/cc" <<END
#!/usr/bin/env bash
for each; do case \$each in -c) exec gcc -fsanitize=thread "\$@" ;; -E | -S | -shared | -v | -V | --version) exec gcc "\$@" ;; esac; done
exec gcc "\$@" -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive -lstdc++ -lm -lpthread -ldl -rdynamic
END
chmod +x "$made/cc"
if [ ! -e "$made/built" ]; then
    (cd "$sources" && setarch -R ./configure -q --disable-gil --enable-shared CC="$made/cc" CFLAGS="-O1 -g1" \
        LDFLAGS="-Wl,-rpath,$sources" && setarch -R make -s -j"$(nproc)")
    touch "$made/built"
fi

# The standard library is not compiled anew: its locks are seen where they are inlined, and the fences of `Arc` are not.
python=("$sources/python")
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" CARGO_TARGET_DIR=$made/target \
    CARGO_PROFILE_CHECKED_DEBUG=line-tables-only setarch -R maturin build --quiet --profile checked --strip false --auditwheel skip \
    --target "$(rustc -vV | sed -n 's/^host: //p')" --interpreter "${python[@]}" --out "$made/wheels"
rm -rf "$made/site"
"${python[@]}" -m zipfile -e "$made"/wheels/dlfield-*.whl "$made/site"
cp "$sources/Tools/tsan/suppressions_free_threading.txt" "$made/suppressions"
printf 'race:%s\n' alloc::sync::Arc rayon_core crossbeam_epoch crossbeam_deque >>"$made/suppressions"

export PYTHON_GIL=0 OPENBLAS_NUM_THREADS=1 JAX_PLATFORMS=cpu
export PYTHONPATH="$made/site:$packages:$PWD/tests/py/support:$PWD/tests/py/tensor:$PWD/tests/py/alloc"
export TSAN_OPTIONS="suppressions=$made/suppressions:ignore_noninstrumented_modules=1:history_size=4:die_after_fork=0:log_path=$made/report"
rm -f "$made"/report.*
# It ends with the sanitizer's own status.
setarch -R "${python[@]}" tools/sanitizers/threads_without_gil.py race || true
[ -n "$(find "$made" -name 'report.*')" ] || { echo "a race that was made on purpose is not found"; exit 1; }
rm -f "$made"/report.*
setarch -R "${python[@]}" tools/sanitizers/threads_without_gil.py
setarch -R "${python[@]}" -m pytest -q -p no:cacheprovider -m "not exhaustive" -k "thread and not interpreter_ends" tests/py/{tensor,exchange,alloc,stencil,arithmetic}
cat "$made"/report.* 2>/dev/null && exit 1
echo "no data race"
