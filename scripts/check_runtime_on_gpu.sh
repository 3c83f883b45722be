#!/usr/bin/env bash
# Checks the runtime (src/runtime/) on an NVIDIA GPU.
#
#     check_runtime_on_gpu.sh make DIRECTORY [CHIP [OTHER]]    where CUDA's tools and cargo are
#     check_runtime_on_gpu.sh run DIRECTORY [NAME ...]         where the GPU is
#
# `make` fills DIRECTORY with the program, which needs glibc and nothing else, and with images for CHIP (sm_90 if it is left
# out) and for another chip that CHIP does not run (sm_80): ptxas compiles the kernels of crates/gpulower-checks/src/runtime/, and
# gpulower examples/saxpy.mlir and strided.mlir. `run` runs the checks, or those whose names contain one of NAMEs, and needs neither cargo nor
# CUDA's tools. The exit status is 0 when every check is right.
#
# GPULOWER_CUDA names the toolkit (.toolkit/cuda if it is not set), GPULOWER the program gpulower (target/debug/gpulower).
set -eu
here="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() {
    sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

make_images() {
    local directory="$1" chip="${2:-sm_90}" other="${3:-sm_80}"
    local cuda="${GPULOWER_CUDA:-$here/.toolkit/cuda}"
    local ptxas="$cuda/bin/ptxas"
    local gpulower="${GPULOWER:-${CARGO_TARGET_DIR:-$here/target}/debug/gpulower}"
    [ -x "$ptxas" ] || { echo "no $ptxas: name a CUDA toolkit in GPULOWER_CUDA, or run 'cargo xtask setup'" >&2; exit 1; }
    [ -x "$gpulower" ] || { echo "no $gpulower: run 'cargo build', or name the program in GPULOWER" >&2; exit 1; }
    mkdir -p "$directory"
    "$ptxas" -arch="$chip" "$here/crates/gpulower-checks/src/runtime/plain.ptx" -o "$directory/plain.cubin"
    "$ptxas" -arch="$other" "$here/crates/gpulower-checks/src/runtime/plain.ptx" -o "$directory/other.cubin"
    for kernel in "$here/examples/saxpy.mlir" "$here/crates/gpulower-checks/src/runtime/strided.mlir"; do
        CUDA_HOME="$cuda" "$gpulower" compile "$kernel" --target "$chip" --emit cubin \
            -o "$directory/$(basename "$kernel" .mlir).cubin"
    done
    (cd "$here" && cargo build --release --locked --package gpulower-checks)
    cp "${CARGO_TARGET_DIR:-$here/target}/release/gpulower-checks" "$directory/"
    echo "$directory is complete: copy it to the machine with the GPU"
}

[ $# -ge 2 ] || usage
action="$1" directory="$2"
shift 2
case "$action" in
    make) make_images "$directory" "$@" ;;
    run)
        [ -x "$directory/gpulower-checks" ] || { echo "no $directory/gpulower-checks: 'make' makes it" >&2; exit 1; }
        exec "$directory/gpulower-checks" runtime "$directory" "$@"
        ;;
    *) usage ;;
esac
