#!/usr/bin/env bash
# Prints what CHANGELOG.md says of a version, for the page of its release: notes.sh VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."
awk -v version="$1" '/^## / { inside = $2 == version; found += inside; next } inside; END { exit !found }' CHANGELOG.md
