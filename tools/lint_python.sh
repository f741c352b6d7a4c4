#!/usr/bin/env bash
# The style and the types of Python, the stub, the layers of the crates and the count of unsafe blocks: a part of `make lint`.
# lint_python.sh BIN: the folder of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
"$1/ruff" check
"$1/ruff" format --check
"$1/python" tools/import_order.py
"$1/python" tools/unsafe_count.py
"$1/mypy"
"$1/pyright" --pythonpath "$1/python"
"$1/python" -m mypy.stubtest dlfield._native --mypy-config-file pyproject.toml \
    --allowlist tools/stubtest-allowlist.txt --ignore-unused-allowlist
