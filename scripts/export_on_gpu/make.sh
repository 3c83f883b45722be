#!/bin/sh
# Makes, for a machine with an NVIDIA GPU, programs of examples/app.mlir (two kernels) and of the kernels saxpy and softmax,
# exported by gpulower and finished by clang 16, 19 and 22 and by cc, each from the forms of an export. To be run in the
# repository; the toolkit that finishes them is CUDA_ROOT.
#
#   scripts/export_on_gpu/make.sh FOLDER [TARGET [GPULOWER]]
#
# FOLDER/run.sh runs them there.
set -eu
: "${CUDA_ROOT:?set CUDA_ROOT to a CUDA toolkit}"
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../examples
mkdir -p "$1"
cd "$1"
target=${2:-sm_90}
gpulower=${3:-gpulower}
release=$("$CUDA_ROOT/bin/ptxas" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
export CUDA_HOME="$CUDA_ROOT"

for kernel in saxpy softmax; do
  { echo 'module attributes {gpu.container_module} {'; cat "$examples/$kernel.mlir" "$here/${kernel}_host.mlir"; echo '}'; } \
    > $kernel.mlir
done
cp "$examples/app.mlir" app.mlir

for clang in 16 19 22 self; do
  for form in obj ll bc; do
    case $clang in
      self) [ $form = obj ] || continue; options="--emit self" ;;
      *) options="--emit $form --finish-with clang-$clang,cuda-$release" ;;
    esac
    for unit in app saxpy softmax; do
      "$gpulower" export $unit.mlir --target "$target" $options -o $unit.$form > $unit.commands
    done
    name=$clang-$form
    run="-Wl,-rpath,/usr/local/cuda/lib64"
    # The commands make one program of each file; saxpy and softmax become one together, with the functions of main.c.
    sh -ec "$(cat app.commands) $run -o app-$name"
    case $form in
      obj) more="-x none softmax.obj" ;;
      *) more="-x ir softmax.$form -x none" ;;
    esac
    ${CC:-cc} -O1 -c "$here/main.c" -o main.o
    sh -ec "$(cat saxpy.commands) main.o $more -lm $run -o math-$name"
  done
done
rm -f app saxpy softmax ./*.obj ./*.ll ./*.bc ./*.commands ./*.mlir main.o
cat > run.sh <<'END'
#!/bin/sh
# Runs every program here; exit status 1 if one of them fails.
cd "$(dirname "$0")"
failed=0
for program in app-* math-*; do
  if output=$(timeout 60 "./$program" 2>&1); then verdict=right; else verdict="FAILED ($?)"; failed=1; fi
  echo "$program: $verdict"
  [ -z "$output" ] || echo "$output" | sed 's/^/  /'
done
exit $failed
END
chmod +x run.sh
