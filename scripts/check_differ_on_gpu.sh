#!/usr/bin/env bash
# Compares kernels at random with an interpretation of them, on an NVIDIA GPU (`gpulower-checks differ gpu`, docs/lab/differential.md).
#
#     check_differ_on_gpu.sh make DIRECTORY               where cargo and LLVM are
#     check_differ_on_gpu.sh run DIRECTORY [OPTION ...]   where the GPU is: --seed S --first N --count N --seconds N --settings A,B
#
# `make` fills DIRECTORY with the program, in the release profile (PROFILE says another), without symbols and compressed, and with
# libdevice: LLVM is in the program. `run` needs xz, libstdc++, libz, libffi, the driver and a ptxas, which is looked for in
# CUDA_HOME, in PATH and in /usr/local/cuda. The exit status is 0 when nothing differs.
set -eu
here="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() {
    sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

make_directory() {
    mkdir -p "$directory"
    local profile="${PROFILE:-release}"
    (cd "$here" && cargo build --profile "$profile" --locked --package gpulower-checks)
    local built="${profile/#dev/debug}"
    strip -o "$directory/gpulower-checks" "${CARGO_TARGET_DIR:-$here/target}/$built/gpulower-checks"
    xz -f -T0 "-${XZ_LEVEL:-6}" "$directory/gpulower-checks"
    cp -L "${CUDA_ROOT:-$here/.toolkit/cuda}/nvvm/libdevice/libdevice.10.bc" "$directory/"
    cp "${BASH_SOURCE[0]}" "$directory/"
    ls -l "$directory"
}

# A toolkit of the ptxas that is here and the libdevice that came along.
make_toolkit() {
    local ptxas
    ptxas="$(PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH:/usr/local/cuda/bin" command -v ptxas)" ||
        { echo "there is no ptxas in CUDA_HOME, PATH or /usr/local/cuda" >&2; exit 1; }
    mkdir -p "$work/cuda/bin" "$work/cuda/nvvm/libdevice"
    ln -s "$ptxas" "$work/cuda/bin/ptxas"
    cp "$directory/libdevice.10.bc" "$work/cuda/nvvm/libdevice/"
}

run_checks() {
    [ -f "$directory/gpulower-checks.xz" ] || { echo "no $directory/gpulower-checks.xz: 'make' makes it" >&2; exit 1; }
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    xz -dc "$directory/gpulower-checks.xz" > "$work/gpulower-checks"
    chmod +x "$work/gpulower-checks"
    make_toolkit
    # Sixteen threads that allocate have a memory of their own each otherwise, and do not give it back.
    CUDA_HOME="$work/cuda" MALLOC_ARENA_MAX=16 "$work/gpulower-checks" differ gpu "$@"
}

[ $# -ge 2 ] || usage
action="$1" directory="$2"
shift 2
case "$action" in
    make) make_directory ;;
    run) run_checks "$@" ;;
    *) usage ;;
esac
