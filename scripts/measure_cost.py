#!/usr/bin/env python3
"""What compiling costs on one core, beside mlir-opt: the table "Cost on one core" of docs/performance.md.

    scripts/measure_cost.py --gpulower PATH --cuda DIR [--mlir-opt PATH] [--before PATH] [--modules 16] [--rounds 5]
                            [--target sm_90]

User and system CPU of the whole process and of what it starts (getrusage), for modules of five kernels (compare/five.mlir):
gpulower with -j1 and without a cache, with and without interleaving, mlir-opt, and with `--before` another gpulower. They take turns
within a round. Medians, with the smallest and the largest. Needs Python 3.9 and a CUDA toolkit.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GOALS = {"ptx": 0.60, "cubin": 0.70}


def cpu_of(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{result.stderr[:3000]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(options, source, work, output):
    def ours(program, *more):
        return [program, "compile", source, "--no-cache", "-j1", "--target", options.target, "--emit", output, *more, "-o",
                f"{work}/{output}/"]

    form = {"ptx": "isa", "cubin": "bin"}[output]
    features = f"cubin-chip={options.target} cubin-features=+ptx80 cubin-format={form} opt-level=3"
    made = {"gpulower": ours(options.gpulower), "interleave=1": ours(options.gpulower, "--interleave", "1")}
    if options.before:
        made["before"] = ours(options.before)
    if options.mlir_opt:
        made["mlir-opt"] = [options.mlir_opt, source, f"--gpu-lower-to-nvvm-pipeline={features}", "-o", work / "out.mlir"]
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpulower", type=pathlib.Path, required=True)
    parser.add_argument("--cuda", type=pathlib.Path, required=True)
    parser.add_argument("--mlir-opt", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--modules", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", default="sm_90")
    options = parser.parse_args()
    cuda = options.cuda.resolve()
    environment = {**os.environ, "CUDA_HOME": str(cuda), "CUDA_ROOT": str(cuda), "PATH": f"{cuda}/bin:{os.environ['PATH']}"}
    text = (HERE / "compare/five.mlir").read_text()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        source = work / "modules.mlir"
        source.write_text("\n".join(text.replace("SEED", str(seed)) for seed in range(1, options.modules + 1)))
        print("| output | program | CPU, s | to mlir-opt | goal |\n|---|---|---|---|---|")
        for output, goal in GOALS.items():
            (work / output).mkdir()
            each = commands(options, source, work, output)
            times = {name: [] for name in each}
            for _ in range(options.rounds):
                for name, command in each.items():
                    times[name].append(cpu_of(command, environment))
            medians = {name: statistics.median(values) for name, values in times.items()}
            for name, values in times.items():
                ratio = f"{medians[name] / medians['mlir-opt']:.2f}" if "mlir-opt" in medians else ""
                print(f"| {output} | {name} | {medians[name]:.2f} ({min(values):.2f} to {max(values):.2f}) | {ratio} | "
                      f"{goal if name == 'gpulower' else ''} |", flush=True)


if __name__ == "__main__":
    main()
