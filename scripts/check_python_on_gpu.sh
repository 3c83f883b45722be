#!/bin/sh
# The Python package on a machine with an NVIDIA GPU: launches with cupy, torch and cuda.core, each result compared.
#
#   scripts/check_python_on_gpu.sh make DIRECTORY [WHEEL]   # where cargo and CUDA's tools are
#   scripts/check_python_on_gpu.sh run DIRECTORY            # where the GPU is: python3 with numpy, cupy and torch
#
# DIRECTORY is carried over: the stripped package (gpulower.tar.xz), the test, and the kernels that it launches, compiled. Nothing
# is downloaded there. The exit status is 1 if anything fails.
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
    rm -rf "$directory/site"
    python3 -m zipfile -e "$wheel" "$directory/site"
    strip "$directory"/site/gpulower/_native*.so
    export CUDA_HOME="${CUDA_HOME:-$here/.toolkit/cuda}"
    cp "$here/crates/gpulower-python/tests/test_gpu.py" "$directory"
    PYTHONPATH="$directory/site" python3 "$directory/test_gpu.py" make "$directory/kernels.pickle"
    XZ_OPT="${XZ_OPT:--T0 -6}" tar -C "$directory" -cJf "$directory/gpulower.tar.xz" site
    rm -rf "$directory/site"
    ls -l "$directory"
    ;;
run)
    cd "$directory"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar -C "$work" -xJf gpulower.tar.xz
    export XDG_CACHE_HOME="$work/cache" PYTHONPATH="$work/site"
    python3 -c 'import gpulower; print("gpulower", gpulower.__version__)'
    python3 test_gpu.py run kernels.pickle
    ;;
*)
    echo "usage: $0 make|run DIRECTORY [WHEEL]" >&2
    exit 2
    ;;
esac
