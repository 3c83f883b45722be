#!/usr/bin/env python3
"""Time what make.py made, side by side on one NVIDIA GPU.

    time_on_gpu.py DIRECTORY [--only KERNEL ...] [--hidden] [--rounds N] [--seed N] [--table FILE] [--shapes FILE]
                   [--kernels FOLDER]

Every result is checked first; a wrong one is a failure, and its case is not timed. Then the variants of a case take turns,
round by round, each with a CUDA graph of as many launches as take about half a millisecond. Printed is nvcc's median, and for
the others the median of the ratios within a round, with the 10th and the 90th percentile.

A third of the kernels, by the hash of their names, is left out unless --hidden: whoever works on the compiler does not look
at it until the work is done. With --kernels, as make.py had it, cases.py of FOLDER has a class Maker, which derives from ours
and has a method for each kernel. Needs numpy, cupy and a driver.
"""

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys

import cases
import cupy as cp
import numpy as np

BASE = "nvcc"


def packed(kernel, case, variant):
    """A kernel's parameters in the order and the types that a variant wants."""
    index = np.int32 if variant["index"] == 32 else np.int64
    values = []
    for name, element, dimensions in kernel["parameters"]:
        value = case.arguments[name]
        if dimensions is None:
            values.append(index(value) if element == "index" else value)
            continue
        values.append(np.uint64(value.data.ptr))
        if variant["arguments"] == "memref":
            values += [np.uint64(value.data.ptr), index(0), *(index(size) for size in value.shape),
                       *(index(stride // value.itemsize) for stride in value.strides)]
    if variant["arguments"] == "plain":
        values += [index(case.arguments[array].shape[at]) for _, array, at in kernel["sizes"]]
    return tuple(values)


def shapes(case):
    return {name: value.shape for name, value in case.arguments.items() if isinstance(value, cp.ndarray)}


def elapsed(graph, stream):
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record(stream)
    graph.launch(stream)
    end.record(stream)
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end)


def graph_of(launch, launches):
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(launches):
            launch()
        return stream.end_capture()


def measure(launchers, rounds):
    """Microseconds of each round, by variant."""
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)
    names = list(launchers)
    first = graph_of(launchers[names[0]], 1)
    elapsed(first, stream)
    once = min(elapsed(first, stream) for _ in range(3))
    launches = max(1, min(100, round(0.5 / max(once, 1e-4))))
    graphs = {name: graph_of(launchers[name], launches) for name in names}
    for name in names:
        elapsed(graphs[name], stream)
        elapsed(graphs[name], stream)
    times = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(elapsed(graphs[name], stream) * 1e3 / launches)
    return times


def right(name, kernel, case, launchers):
    """Checks every variant. Where there is no reference, nvcc's result is it."""
    good = True
    for variant, launch in launchers.items():
        case.prepare()
        launch()
        cp.cuda.Device().synchronize()
        for array, expected in case.expected.items():
            if expected is None:
                case.expected[array] = case.arguments[array].astype(cp.float64)
        error = case.error()
        if not error <= case.tolerance:
            print(f"{name:26}WRONG: {variant}: relative error {error:.2e}", flush=True)
            good = False
    return good


def maker_of(folder):
    """The class that makes the cases of a folder's kernels."""
    if folder is None:
        return cases.Maker
    description = importlib.util.spec_from_file_location("their_cases", folder / "cases.py")
    theirs = importlib.util.module_from_spec(description)
    description.loader.exec_module(theirs)
    return theirs.Maker


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--shapes", type=pathlib.Path, help="write the shapes of all arrays, for make.py, and do nothing else")
    parser.add_argument("--kernels", type=pathlib.Path, metavar="FOLDER", help="whose cases.py makes the cases")
    options = parser.parse_args()
    if options.kernels and not (options.kernels / "cases.py").exists():
        parser.error(f"--kernels: there is no cases.py in {options.kernels}")
    make = maker_of(options.kernels)
    kernels = json.loads((options.directory / "kernels.json").read_text())
    if missing := [kernel for kernel in kernels if not hasattr(make, kernel)]:
        parser.error(f"nothing says what these are launched with: {', '.join(missing)}; --kernels names the folder whose cases.py does")
    if options.shapes:
        options.shapes.write_text(json.dumps({kernel: shapes(getattr(make(options.seed), kernel)()) for kernel in kernels}))
        return 0
    variants = json.loads((options.directory / "variants.json").read_text())
    others = [name for name in variants if name != BASE]
    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"device {device}, driver API {cp.cuda.runtime.driverGetVersion()}, {options.rounds} rounds; ratios to {BASE}: "
          f"below 1 is faster\n{'':26}{BASE + ' us':>10}" + "".join(f"{name:>22}" for name in others), flush=True)
    wrong, rows = 0, []
    for kernel in kernels:
        if (options.only and kernel not in options.only) or (kernels[kernel]["hidden"] and not options.hidden):
            continue
        case = getattr(make(options.seed), kernel)()
        block = tuple(kernels[kernel]["block"])
        for form in ("stated", "open"):
            launchers, modules = {}, []
            for name, variant in variants.items():
                folder = options.directory / name / form
                files = [folder / f"{kernel}.sm_90.cubin", folder / f"{kernel}.cubin", folder / "kernels.cubin"]
                module = cp.RawModule(path=str(next(file for file in files if file.exists())))
                modules.append(module)
                arguments = packed(kernels[kernel], case, variant)
                function = module.get_function(kernel)
                launchers[name] = lambda function=function, arguments=arguments, grid=case.grid, block=block: function(grid, block, arguments)
            label = f"{kernel} {form}"
            if not right(label, kernel, case, launchers):
                wrong += 1
                continue
            times = measure(launchers, options.rounds)
            row = {"kernel": kernel, "form": form, "hidden": kernels[kernel]["hidden"], BASE: statistics.median(times[BASE])}
            line = f"{label:26}{row[BASE]:10.1f}"
            for name in others:
                each = [mine / theirs for mine, theirs in zip(times[name], times[BASE])]
                row[name] = [statistics.median(each), float(np.percentile(each, 10)), float(np.percentile(each, 90))]
                line += "{:8.3f} ({:.3f}-{:.3f})".format(*row[name])
            rows.append(row)
            print(line, flush=True)
    if options.table:
        options.table.write_text(json.dumps({"device": device, "rows": rows}, indent=1))
    for name in others:
        def mean(wanted, name=name):
            ratios = [row[name][0] for row in rows if wanted(row)]
            return f"{statistics.geometric_mean(ratios):.3f} of {len(ratios)}, worst {max(ratios):.3f}" if ratios else "-"
        print(f"{name}: all {mean(lambda row: True)}; stated {mean(lambda row: row['form'] == 'stated')}; "
              f"open {mean(lambda row: row['form'] == 'open')}; hidden third {mean(lambda row: row['hidden'])}")
    if wrong:
        print(f"{wrong} cases are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
