#!/bin/sh
# Compilers that others wrote, with gpulower under them, on a machine with an NVIDIA GPU: results, and times beside their own.
#
#   scripts/check_integrations_on_gpu.sh make DIRECTORY [WHEEL]   # where cargo is, after `cargo xtask test integrations`
#   scripts/check_integrations_on_gpu.sh run DIRECTORY            # where the GPU is: python3 with numpy, cupy, torch, triton
#
# DIRECTORY is carried over: the stripped package, Triton's kernels, numba-cuda-mlir's MLIR, xDSL, and the tensor compiler where
# GPULOWER_TENSOR names its program. Nothing is downloaded there.
# numba-cuda-mlir is compared with itself where it is installed. The exit status is 1 if anything fails.
set -eu

action=${1:?make or run}
directory=${2:?a directory}
here=$(cd "$(dirname "$0")/.." && pwd)

case $action in
make)
    mkdir -p "$directory"
    directory=$(cd "$directory" && pwd)
    wheel=${3:-}
    if [ -z "$wheel" ]; then
        (cd "$here" && cargo xtask wheel)
        wheel=$(ls "$here"/target/wheels/gpulower-*.whl)
    fi
    environment="$here/.toolkit/integrations"
    cuda="${CUDA_HOME:-$here/.toolkit/cuda}"
    for package in triton numba xdsl; do
        rm -rf "${directory:?}/$package"
        cp -r "$here/integrations/$package" "$directory/$package"
    done
    CUDA_HOME="$cuda" LD_LIBRARY_PATH="$cuda/lib" PYTHONDONTWRITEBYTECODE=1 \
        "$environment/bin/python" "$directory/numba/on_gpu.py" make "$directory/numba"
    rm -rf "$directory/site"
    python3 -m zipfile -e "$wheel" "$directory/site"
    strip --strip-unneeded "$directory"/site/gpulower/_native*.so
    for name in xdsl immutabledict ordered_set typing_extensions.py; do
        cp -r "$environment"/lib/python3*/site-packages/"$name" "$directory/site"
    done
    find "$directory" -name __pycache__ -prune -exec rm -r {} +
    XZ_OPT="${XZ_OPT:--T0 -6}" tar -C "$directory" -cJf "$directory/site.tar.xz" site
    rm -rf "$directory/site"
    if [ -n "${GPULOWER_TENSOR:-}" ]; then
        mkdir -p "$directory/tensor"
        cp "$here/integrations/tensor/on_gpu.py" "$directory/tensor"
        strip -o "$directory/tensor/gpulower-tensor" "$GPULOWER_TENSOR"
        xz -f -T0 "$directory/tensor/gpulower-tensor"
    fi
    cp "$here/scripts/check_integrations_on_gpu.sh" "$directory/run.sh"
    ls -l "$directory"
    ;;
run)
    directory=$(cd "$directory" && pwd)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar -C "$work" -xJf "$directory/site.tar.xz"
    export XDG_CACHE_HOME="$work/cache" PYTHONDONTWRITEBYTECODE=1 TRITON_CACHE_DIR="$work/triton"
    python=${PYTHON:-python3}
    failed=0
    part() {
        name=$1
        shift
        echo "== $name"
        PYTHONPATH="$directory/$name:$work/site" "$@" || failed=1
    }
    part triton "$python" "$directory/triton/on_gpu.py"
    part numba "$python" "$directory/numba/on_gpu.py" run "$directory/numba"
    part xdsl "$python" -c 'import saxpy; saxpy.run(); print("saxpy right")'
    if [ -d "$directory/tensor" ]; then
        xz -dc "$directory/tensor/gpulower-tensor.xz" > "$work/gpulower-tensor"
        chmod +x "$work/gpulower-tensor"
        part tensor "$python" "$directory/tensor/on_gpu.py" "$work/gpulower-tensor"
    fi
    exit $failed
    ;;
*)
    echo "usage: $0 make|run DIRECTORY" >&2
    exit 2
    ;;
esac
