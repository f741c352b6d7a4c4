#!/usr/bin/env bash
# Installs the packages of a target of the Makefile (the extras and groups of pyproject.toml), and marks that with a file:
# packages.sh VENV TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1 target=$2

install() { "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; }

case "$target" in
demo)
    echo "Installing GT4Py, JAX and matplotlib"
    install -r pyproject.toml --extra demo
    ;;
test)
    echo "Installing every framework the tests use (PyTorch is gigabytes)"
    install -r pyproject.toml --extra demo --extra xarray --extra dask --extra mpi --group test
    # After PyTorch, which pins versions of some of these.
    install --group sim
    touch "$venv/.demo"
    ;;
exhaustive)
    install --group ray
    install --group browser || echo "NOT INSTALLED: Chromium for tests/py/docs/test_notebook.py and test_site.py, which are skipped"
    ;;
torch)
    echo "Installing PyTorch (gigabytes)"
    install torch
    ;;
*) install --group "$target" ;;
esac
touch "$venv/.$target"
