#!/usr/bin/env python3
"""Run the programs that make.py made with nvcc's kernels and with others, on NVIDIA GPUs of this machine.

    time_on_gpu.py DIRECTORY [--gpus N] [--limit SECONDS] [--total SECONDS] [--only PROGRAM ...] [--table FILE]

A program that takes longer than the limit, or fails, with nvcc's kernels is left out. What it says of its own results (PASS,
FAIL, error, mismatch) has to be the same with other kernels; where it is not, the times of the program do not count. For each kernel that has at least 2 percent of its program's time and
takes 2.5 microseconds: the median of its launches, in relation to nvcc's. Needs Python alone, CUDA's runtime and a driver.
"""

import argparse
import json
import math
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

VERDICTS = re.compile(r"\b(FAIL|PASS|fail|pass|mismatch|Mismatch|error|Error|ERROR)")
BASE = "nvcc"


def run(directory, name, call, variant, gpu, limit):
    """Exit status, what the program says of its results, and the times of its kernels."""
    times = pathlib.Path(f"/tmp/programs-{os.getpid()}-{gpu}")
    times.unlink(missing_ok=True)
    folder = directory / "programs" / name
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu), "LD_PRELOAD": str(directory / "fatbins.so"),
                   "LD_LIBRARY_PATH": f"{directory}:/usr/local/cuda/lib64", "PROGRAM_TIMES": str(times)}
    if variant != BASE:
        environment["PROGRAM_CODE"] = str(folder / variant)
    try:
        result = subprocess.run(["./program", *call], cwd=folder, env=environment, capture_output=True, timeout=limit, text=True,
                                errors="replace")
    except subprocess.TimeoutExpired:
        return {"status": "too long"}
    kernels = {}
    if times.exists():
        for line in times.read_text().splitlines():
            kernel, launches, median, total, registers = line.split("\t")
            kernels[kernel] = {"launches": int(launches), "median": int(median), "sum": int(total), "registers": int(registers)}
        times.unlink()
    return {"status": result.returncode, "says": sorted(set(VERDICTS.findall(result.stdout + result.stderr))), "kernels": kernels}


def run_all(directory, made, options):
    waiting = queue.Queue()
    for name in made["calls"]:
        if not options.only or name in options.only:
            waiting.put(name)
    results, end = {}, time.monotonic() + options.total

    def work(gpu):
        while time.monotonic() < end:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            result = {}
            for variant in [BASE, *made["variants"]]:
                result[variant] = run(directory, name, made["calls"][name], variant, gpu, options.limit)
                if result[BASE]["status"] != 0:
                    break
            results[name] = result

    workers = [threading.Thread(target=work, args=(gpu,)) for gpu in range(options.gpus)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def table(results, variants):
    """Ratios to nvcc by kernel; whether every program says with other kernels what it says with nvcc's."""
    rows, same = [], True
    for name, result in sorted(results.items()):
        base = result[BASE]
        if base["status"] != 0:
            continue
        differs = False
        for variant in variants:
            if (other := result[variant])["status"] != 0 or other["says"] != base["says"]:
                differs = differs or other["status"] != "too long"
                print(f"{name}, {variant}: {other['status']}, {other.get('says')} for {base['says']}")
        if differs:
            same = False
            continue
        total = sum(kernel["sum"] for kernel in base["kernels"].values())
        for kernel, time_of in base["kernels"].items():
            if time_of["sum"] >= total / 50 and time_of["median"] >= 2500:
                others = {variant: result[variant].get("kernels", {}).get(kernel) for variant in variants}
                rows.append({"program": name, "kernel": kernel, BASE: time_of["median"],
                             **{variant: other["median"] / time_of["median"] for variant, other in others.items() if other}})
    return rows, same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--total", type=float, default=math.inf)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    made = json.loads((options.directory / "programs.json").read_text())
    results = run_all(options.directory, made, options)
    rows, same = table(results, made["variants"])
    for row in sorted(rows, key=lambda row: -row.get("gpulower", 0)):
        ratios = "  ".join(f"{variant} {row[variant]:.3f}" for variant in made["variants"] if variant in row)
        print(f"{row['program']:<20} {row['kernel'][:48]:<48} {row[BASE] / 1000:>10.1f} us  {ratios}")
    ran = {row["program"] for row in rows}
    for variant in made["variants"]:
        if ratios := [row[variant] for row in rows if variant in row]:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{variant}: {mean:.3f} of {BASE}, {len(ratios)} kernels of {len(ran)} programs, "
                  f"{sum(ratio > 1.02 for ratio in ratios)} above 1.02")
    if options.table:
        options.table.write_text(json.dumps(rows, indent=1))
    sys.exit(0 if same and rows else 1)


if __name__ == "__main__":
    main()
