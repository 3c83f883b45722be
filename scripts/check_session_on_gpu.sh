#!/usr/bin/env bash
# Checks sessions, and what MLIR's operations for newer chips do, on an NVIDIA GPU (`gpulower-checks session`).
#
#     check_session_on_gpu.sh make DIRECTORY              where cargo and LLVM are
#     check_session_on_gpu.sh run DIRECTORY [NAME ...]    where the GPU is
#
# `make` fills DIRECTORY with the program, in the release profile, without symbols and compressed: LLVM is in it. `run` runs the
# checks, or those whose names contain one of NAMEs. It needs xz, libstdc++, libz, libzstd, the driver and a CUDA toolkit, which
# is looked for as gpulower does: CUDA_HOME, ptxas in PATH, /usr/local/cuda. The exit status is 0 when every check is right.
set -eu
here="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() {
    sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

make_directory() {
    mkdir -p "$directory"
    (cd "$here" && cargo build --release --locked --package gpulower-checks)
    strip -o "$directory/gpulower-checks" "${CARGO_TARGET_DIR:-$here/target}/release/gpulower-checks"
    xz -f -T0 "-${XZ_LEVEL:-6}" "$directory/gpulower-checks"
    ls -l "$directory/gpulower-checks.xz"
}

run_checks() {
    [ -f "$directory/gpulower-checks.xz" ] || { echo "no $directory/gpulower-checks.xz: 'make' makes it" >&2; exit 1; }
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    xz -dc "$directory/gpulower-checks.xz" > "$work/gpulower-checks"
    chmod +x "$work/gpulower-checks"
    "$work/gpulower-checks" session "$@"
}

[ $# -ge 2 ] || usage
action="$1" directory="$2"
shift 2
case "$action" in
    make) make_directory ;;
    run) run_checks "$@" ;;
    *) usage ;;
esac
