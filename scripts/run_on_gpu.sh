#!/bin/sh
# Runs every GPU check of the folder that this lies in, which `cargo xtask gpu make` made, on this machine's NVIDIA GPU.
#
#   run.sh [PART ...]
#
# A line for each part; what the parts print is in LOGS (the folder `logs` here, if that variable is not set). The exit status
# is 0 when every part is right. Needs a driver, and Python with numpy, cupy and mpmath; the parts `run` and `session`, which
# compile, need a CUDA toolkit as well, `runtime`, `run`, `session`, `python` and `integrations` xz, and the last two torch and Triton.
set -u
cd "$(dirname "$0")" || exit 2
logs=${LOGS:-$PWD/logs}
mkdir -p "$logs" || exit 2
failed=0 run=0

# part NAME WHAT-IT-NEEDS COMMAND ...
part() {
  name=$1 needs=$2
  shift 2
  case " $wanted " in '  ' | *" $name "*) ;; *) return ;; esac
  if [ ! -e "$needs" ]; then
    echo "absent $name: there is no $needs here; 'make' said why"
    return
  fi
  run=$((run + 1))
  if timeout 1800 "$@" > "$logs/$name.txt" 2>&1; then
    printf 'ok     %-12s %s\n' "$name" "$(tail -n 1 "$logs/$name.txt")"
  else
    status=$?
    failed=$((failed + 1))
    printf 'FAILED %-12s exit status %s; the end of %s:\n' "$name" "$status" "$logs/$name.txt"
    tail -n 12 "$logs/$name.txt" | sed 's/^/    /'
  fi
}

# The program of the parts `runtime` and `session`.
if [ -e gpulower-checks.xz ]; then
  xz -dc gpulower-checks.xz > gpulower-checks && chmod +x gpulower-checks || exit 2
fi

wanted="$*"
python=${PYTHON:-python3}
part examples cubins "$python" scripts/check_on_gpu.py cubins
part fatbins fatbins "$python" scripts/check_on_gpu.py fatbins
part lowering lowering.cubin "$python" scripts/check_lowering_on_gpu.py lowering.cubin
part subgroups orderings.cubin "$python" scripts/check_subgroups_on_gpu.py subgroups.cubin orderings.cubin
part math math "$python" scripts/check_math_on_gpu.py run math
part containers containers "$python" scripts/check_containers_on_gpu.py run containers
part link link "$python" scripts/check_device_link_on_gpu.py link
part runtime runtime ./gpulower-checks runtime runtime
part run run scripts/check_run_on_gpu.sh run run
part session gpulower-checks ./gpulower-checks session
part export export export/run.sh
part python python scripts/check_python_on_gpu.sh run python
part integrations integrations scripts/check_integrations_on_gpu.sh run integrations

echo "$((run - failed)) of $run parts are right"
[ "$failed" -eq 0 ] && [ "$run" -gt 0 ]
