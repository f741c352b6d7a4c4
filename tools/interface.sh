#!/usr/bin/env bash
# Checks the public interface in Rust, with tools that read what rustdoc writes as JSON:
#   interface.sh api PYTHON PROGRAM...   runs the program with cargo-public-api on the path
#   interface.sh semver                  compares with the newest tag v*; before the first release there is nothing to compare with
# A tool is compiled once into target/tools, without optimization: it runs for seconds, and compiled for minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
# The toolchain whose rustdoc the tools understand: the one in use, if it has this version.
version=1.95.0
toolchain=$version
case "$(rustc --version)" in "rustc $version"*) toolchain=$(rustup show active-toolchain | cut -d' ' -f1) ;; esac
tools=$PWD/target/tools

# tool NAME VERSION: compiles a tool of cargo, and puts it on the path
tool() {
    cargo "+$toolchain" --version >/dev/null 2>&1 || rustup --quiet toolchain install --profile minimal "$toolchain"
    if [ ! -x "$tools/bin/$1" ]; then
        CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --debug --root "$tools" "$1@$2"
        rm -rf "$tools/build"
    fi
    export PATH=$tools/bin:$PATH CARGO_TARGET_DIR=$PWD/target/api
}

case "$1" in
api)
    tool cargo-public-api 0.52.0
    API_TOOLCHAIN=$toolchain "${@:2}"
    ;;
semver)
    release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
    if [ -z "$release" ]; then
        echo "no tag v*: nothing is released yet that the interface could be compared with"
    else
        tool cargo-semver-checks 0.51.0
        cargo "+$toolchain" semver-checks --package dlfield --all-features --baseline-rev "$release"
    fi
    ;;
*) sed -n '2,5p' "$0" && exit 2 ;;
esac
