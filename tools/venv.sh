#!/usr/bin/env bash
# Makes the environment of the Makefile: venv.sh PYTHON VENV. uv installs the gigabytes of the frameworks in a fraction of pip's
# time, and reuses the downloads of other checkouts.
set -euo pipefail
python=$1 venv=$2
command -v "$python" >/dev/null || { echo "$python not found: name one with make PYTHON=..." && exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$python is $("$python" -V), dlfield needs 3.11 or newer: make PYTHON=python3.11" && exit 1
}
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "uv>=0.9,<1"
