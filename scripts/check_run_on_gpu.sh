#!/usr/bin/env bash
# Checks `gpulower run` on an NVIDIA GPU.
#
#     check_run_on_gpu.sh make DIRECTORY [CHIP]    where gpulower and mlir-opt are
#     check_run_on_gpu.sh run DIRECTORY [CHIP]     where the GPU is (CHIP is that of `make` if it is left out)
#
# `make` fills DIRECTORY with the program gpulower, stripped and compressed, with the programs of scripts/run_on_gpu/, and
# with one of them as MLIR's own pipeline lowers it for CHIP (sm_90 if it is left out). `run` runs them, prints a line for
# each, and ends with 1 if one is not as expected. It needs xz, libstdc++, libz, libzstd and the driver; and ptxas, or the
# driver compiles PTX.
#
# GPULOWER names the program gpulower (target/release/gpulower or target/debug/gpulower), MLIR_OPT mlir-opt.
set -u
here="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() {
    sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

fail() {
    echo "$1" >&2
    exit 1
}

make_directory() {
    local directory="$1" chip="${2:-sm_90}" target="${CARGO_TARGET_DIR:-$here/target}"
    local gpulower="${GPULOWER:-$target/release/gpulower}"
    [ -x "$gpulower" ] || gpulower="$target/debug/gpulower"
    [ -x "$gpulower" ] || fail "no $gpulower: run 'cargo build --release', or name the program in GPULOWER"
    local opt="${MLIR_OPT:-/usr/lib/llvm-22/bin/mlir-opt}"
    [ -x "$opt" ] || fail "no $opt: run 'cargo xtask setup', or name mlir-opt in MLIR_OPT"
    mkdir -p "$directory" || exit 1
    echo "$chip" > "$directory/chip" || exit 1
    cp "$here/examples/app.mlir" "$here"/scripts/run_on_gpu/*.mlir "$directory/" || exit 1
    # A number that is not 0; the program fills its matrices from it.
    sed "s/constant SEED/constant $((RANDOM + 1))/" "$here/crates/gpulower-checks/src/session/tma_wgmma.mlir" > "$directory/tma_wgmma.mlir" || exit 1
    "$opt" "$here/scripts/run_on_gpu/registered.mlir" -o "$directory/lowered_by_mlir.mlir" \
        --gpu-lower-to-nvvm-pipeline="cubin-chip=$chip cubin-features=+ptx80 cubin-format=isa" || fail "mlir-opt failed"
    # MLIR 22 does not lower launches that have tokens already.
    sed '/^func.func @tokens/,$d' "$here/scripts/run_on_gpu/tasks.mlir" | "$opt" -gpu-kernel-outlining \
        | "$opt" "--pass-pipeline=builtin.module(gpu.module(strip-debuginfo,convert-gpu-to-nvvm),nvvm-attach-target{chip=$chip features=+ptx80})" \
        | "$opt" -gpu-async-region -convert-scf-to-cf -gpu-to-llvm -gpu-module-to-binary=format=isa -async-to-async-runtime \
            -async-runtime-ref-counting -convert-async-to-llvm -convert-func-to-llvm -convert-arith-to-llvm -convert-cf-to-llvm \
            -reconcile-unrealized-casts -o "$directory/tasks_lowered_by_mlir.mlir" || fail "mlir-opt failed"
    cc -shared -fPIC -O1 -o "$directory/prints.so" "$here/scripts/run_on_gpu/prints.c" || fail "cannot compile prints.c"
    strip -o "$directory/gpulower" "$gpulower" && xz -f -T0 "-${XZ_LEVEL:-6}" "$directory/gpulower" || fail "cannot compress $gpulower"
    ls -l "$directory/gpulower.xz"
}

failed=0

# expect NAME STATUS TEXT COMMAND..: the status, and a text in what the command says on its standard error output.
expect() {
    local name="$1" status="$2" text="$3" said found
    shift 3
    said="$("$@" 2>&1)"
    found=$?
    if [ "$found" -eq "$status" ] && { [ -z "$text" ] || [[ "$said" == *"$text"* ]]; }; then
        echo "ok      $name${said:+: ${said//$'\n'/ }}"
    else
        echo "FAILED  $name: status $found (expected $status), expected '$text', said: $said"
        failed=1
    fi
}

run_all() {
    local directory="$1" chip="${2:-}"
    [ -n "$chip" ] || chip="$(cat "$directory/chip")" || exit 1
    [ -f "$directory/gpulower.xz" ] || fail "no $directory/gpulower.xz: 'make' makes it"
    local work
    work="$(mktemp -d)" || exit 1
    trap 'rm -rf "$work"' EXIT
    xz -dc "$directory/gpulower.xz" > "$work/gpulower" && chmod +x "$work/gpulower" || exit 1
    local run="$work/gpulower run"
    for name in app memory registered clusters tensor_map tasks; do
        expect "$name for the device" 0 "" $run "$directory/$name.mlir"
        expect "$name for $chip" 0 "" $run "$directory/$name.mlir" --target "$chip"
    done
    # What sm_90 does not have: the device's own target is sm_90a. The program counts the elements that are wrong.
    if [ "$chip" = sm_90 ]; then
        for name in aligned_tma aligned_gemm aligned_gemm_dynamic; do
            expect "$name for the device" 0 "wrong elements of" $run "$directory/$name.mlir" \
                --shared-libs "$directory/prints.so"
        done
        expect "TMA and wgmma for the device" 0 "" bash -c 'wrong="$("$@")"; echo "$wrong wrong"; [ "$wrong" = 0 ]' - \
            $run "$directory/tma_wgmma.mlir"
        expect "TMA and wgmma for sm_90" 1 "not supported on sm_90" $run "$directory/tma_wgmma.mlir" --target sm_90
    fi
    # A toolkit without anything in it.
    mkdir "$work/empty"
    expect "$chip with PTX alone" 0 "" $run "$directory/app.mlir" --target "$chip" --cuda "$work/empty"
    expect "lowered by MLIR" 0 "" $run "$directory/lowered_by_mlir.mlir"
    expect "tasks that hand tokens on" 0 "" $run "$directory/tasks.mlir" --entry tokens
    expect "a task that fails" 1 "mgpuMemAlloc: " $run "$directory/tasks.mlir" --entry stops
    expect "tasks lowered by MLIR" 0 "" $run "$directory/tasks_lowered_by_mlir.mlir"
    expect "a kernel for another chip" 1 "sm_100a" $run "$directory/app.mlir" --target sm_100a
    expect "a fault in a kernel" 1 "gpu.launch_func: " $run "$directory/fault.mlir"
    expect "a box that is too large" 1 "mgpuTensorMapEncodeTiledMemref: " $run "$directory/tensor_map.mlir" --entry badly
    expect "too many threads" 1 "gpu.launch_func: kernel nothing: a block of 4096 x 1 x 1 threads" $run "$directory/too_many_threads.mlir"
    expect "too much memory" 1 "mgpuMemAlloc: " $run "$directory/too_much_memory.mlir"
    expect "no such device" 1 "there is no device 99" $run "$directory/no_such_device.mlir"
    expect "no such device from the command line" 1 "there is no device 99" $run "$directory/app.mlir" --device 99
    exit "$failed"
}

[ $# -ge 2 ] || usage
action="$1"
shift
case "$action" in
    make) make_directory "$@" ;;
    run) run_all "$@" ;;
    *) usage ;;
esac
