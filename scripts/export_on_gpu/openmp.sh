#!/bin/sh
# Makes, for a machine with an NVIDIA GPU, programs that clang 22's libomptarget runs: clang's own `#pragma omp target` regions
# beside a kernel of gpulower on the same device pointers, once with clang's device runtime and once without (`ompx_bare`), and
# examples/app.mlir. To be run in the repository.
#
#   scripts/export_on_gpu/openmp.sh FOLDER LLVM [TARGET [GPULOWER]]
#
# LLVM: sources of LLVM 22 (`openmp/device`, `offload/include`, `libc/shared`, `libc/src/__support`): Debian has no package
# of that device runtime. CUDA_ROOT: a toolkit with nvlink, of CUDA 12 for chips before sm_100. OPENMP: a folder with links
# libomptarget.so and libomp.so, and what they need. FOLDER/run.sh runs the programs there.
set -eu
: "${CUDA_ROOT:?set CUDA_ROOT to a CUDA toolkit}" "${OPENMP:?set OPENMP to the folder of libomptarget.so}"
root=$(cd "$(dirname "$0")/../.." && pwd)
tests=$root/crates/gpulower-cli/tests/cli
llvm=$(cd "$2" && pwd)
target=${3:-sm_90}
gpulower=${4:-gpulower}
mkdir -p "$1/device" "$1/lib"
cp -d "$OPENMP"/lib* "$1/lib"
cd "$1"
export CUDA_HOME="$CUDA_ROOT" PATH="$CUDA_ROOT/bin:$PATH"

# As openmp/device/CMakeLists.txt does.
for file in "$llvm"/openmp/device/src/*.cpp; do
  clang-22 --target=nvptx64-nvidia-cuda -c -O2 -std=c++17 -flto -fvisibility=hidden -nogpulib -nostdlibinc -fno-rtti \
    -fno-exceptions -fconvergent-functions -mllvm -vectorize-slp=false --cuda-feature=+ptx63 -DSHARED_SCRATCHPAD_SIZE=512 \
    -I "$llvm/openmp/device/include" -I "$llvm/libc" -I "$llvm/offload/include" "$file" \
    -o "device/$(basename "$file" .cpp).bc"
done
llvm-link-22 device/*.bc -o libomptarget-nvptx.bc
llvm-ar-22 rcs device/libompdevice.a libomptarget-nvptx.bc

release=$("$CUDA_ROOT/bin/ptxas" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
export_for_openmp() {
  "$gpulower" export "$1" --kind openmp --target "$target" --finish-with "clang-22,cuda-$release" -o "$2"
}
link="-lomptarget -Llib"
export_for_openmp "$tests/openmp_regions.mlir" ours.o > /dev/null
clang="clang-22 -O1 -fopenmp --offload-arch=$target --cuda-path=$CUDA_ROOT -DCOUNT=1000003"
$clang --libomptarget-nvptx-bc-path=libomptarget-nvptx.bc -c "$tests/openmp_regions.c" -o regions.o
$clang regions.o ours.o -Xoffload-linker -Ldevice $link -o regions-runtime
$clang -nogpulib -DBARE -c "$tests/openmp_regions.c" -o regions.o
$clang -nogpulib regions.o ours.o $link -o regions-bare
sh -ec "$(export_for_openmp "$root/examples/app.mlir" app.o | tail -1) $link"
rm -rf device ./*.o ./*.bc
cat > run.sh <<'END'
#!/bin/sh
# Runs every program here on the GPU, and nothing of them on the host; exit status 1 if one of them fails.
cd "$(dirname "$0")"
# libomptarget opens libcuda.so, and containers may have libcuda.so.1 alone.
ln -sf "$(ldconfig -p | sed -n 's/.*libcuda.so.1 .*=> //p' | head -1)" lib/libcuda.so
export LD_LIBRARY_PATH="$PWD/lib" OMP_TARGET_OFFLOAD=MANDATORY LIBOMPTARGET_INFO=16
failed=0
for program in regions-runtime regions-bare app; do
  if output=$(timeout 60 "./$program" 2>&1); then verdict=right; else verdict="FAILED ($?)"; failed=1; fi
  echo "$program: $verdict"
  echo "$output" | sed -n 's/.*\(Launching kernel\)/  \1/p; s/.* wrong of /  &/p'
done
exit $failed
END
chmod +x run.sh
