#!/usr/bin/env bash
# Checks that lock files are as Cargo.toml says, and that every crate in them has a licence and an origin of tools/deny.toml and no known
# vulnerability: deny.sh CARGO_DENY MANIFEST... The list of vulnerabilities is a Git repository: without the network it is not to
# be had, and the last line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
shift

# check MANIFEST SUBJECT...
check() {
    echo "cargo deny check ${*:2}: $1"
    "$program" --log-level warn --locked --config tools/deny.toml --manifest-path "$1" check --hide-inclusion-graph "${@:2}"
}

for manifest; do check "$manifest" licenses bans sources; done
if "$program" --log-level off --config tools/deny.toml fetch db; then
    for manifest; do check "$manifest" --disable-fetch advisories; done
else
    echo "NOT CHECKED for known vulnerabilities: no connection to https://github.com/RustSec/advisory-db"
fi
