#!/bin/sh
# Makes, for a machine with an NVIDIA GPU, programs that clang 22's libomptarget runs: clang's own `#pragma omp target` regions
# without a device runtime (`ompx_bare`) beside a kernel of gpulower on the same device pointers, and examples/app.mlir. To be run in
# the repository.
#
#   scripts/export_on_gpu/openmp.sh FOLDER [TARGET [GPULOWER]]
#
# CUDA_ROOT: a toolkit with nvlink, of CUDA 12 for chips before sm_100. OPENMP: a folder with links libomptarget.so and
# libomp.so, and what they need. FOLDER/run.sh runs the programs there.
set -eu
: "${CUDA_ROOT:?set CUDA_ROOT to a CUDA toolkit}" "${OPENMP:?set OPENMP to the folder of libomptarget.so}"
root=$(cd "$(dirname "$0")/../.." && pwd)
tests=$root/crates/gpulower-cli/tests/cli
target=${2:-sm_90}
gpulower=${3:-gpulower}
mkdir -p "$1/lib"
cp -d "$OPENMP"/lib* "$1/lib"
cd "$1"
export CUDA_HOME="$CUDA_ROOT" PATH="$CUDA_ROOT/bin:$PATH"

release=$("$CUDA_ROOT/bin/ptxas" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
export_for_openmp() {
  "$gpulower" export "$1" --kind openmp --target "$target" --finish-with "clang-22,cuda-$release" -o "$2"
}
link="-lomptarget -Llib"
export_for_openmp "$tests/openmp_regions.mlir" ours.o > /dev/null
clang="clang-22 -O1 -fopenmp --offload-arch=$target --cuda-path=$CUDA_ROOT -DCOUNT=1000003"
$clang -nogpulib -DBARE -c "$tests/openmp_regions.c" -o regions.o
$clang -nogpulib regions.o ours.o $link -o regions-bare
sh -ec "$(export_for_openmp "$root/examples/app.mlir" app.o | tail -1) $link"
rm -f ./*.o
cat > run.sh <<'END'
#!/bin/sh
# Runs every program here on the GPU, and nothing of them on the host; exit status 1 if one of them fails.
cd "$(dirname "$0")"
# libomptarget opens libcuda.so, and containers may have libcuda.so.1 alone.
ln -sf "$(ldconfig -p | sed -n 's/.*libcuda.so.1 .*=> //p' | head -1)" lib/libcuda.so
export LD_LIBRARY_PATH="$PWD/lib" OMP_TARGET_OFFLOAD=MANDATORY LIBOMPTARGET_INFO=16
failed=0
for program in regions-bare app; do
  if output=$(timeout 60 "./$program" 2>&1); then verdict=right; else verdict="FAILED ($?)"; failed=1; fi
  echo "$program: $verdict"
  echo "$output" | sed -n 's/.*\(Launching kernel\)/  \1/p; s/.* wrong of /  &/p'
done
exit $failed
END
chmod +x run.sh
