#!/usr/bin/env python3
"""Compile times of gpulower beside those of every alternative, measured in one run on one machine.

    cargo xtask compare [--rounds N] [--output docs/performance.md] [--only PART ...]

Every result is checked: it has to hold the kernels that went in, and what is compiled twice has to be the same bytes.
Programs are rotated within a round, so that what the machine does meanwhile meets all of them.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MARK = "<!-- made by cargo xtask compare: {} -->"
KERNELS = ["saxpy", "gelu", "softmax", "transpose", "matmul"]


class Missing(Exception):
    """Something to compare with is not on this machine."""


def module(seed, suffix="mlir"):
    return (HERE / f"five.{suffix}").read_text().replace("SEED", str(seed))


def large_kernel(operations):
    """One kernel of so many arithmetic operations."""
    lines = [
        "gpu.module @large {",
        "  gpu.func @large(%x: memref<?xf32>, %n: index) kernel {",
        "    %t = gpu.thread_id x",
        "    %v0 = memref.load %x[%t] : memref<?xf32>",
        "    %c = arith.constant 1.5 : f32",
    ]
    for index in range(operations):
        operation = ("mulf", "addf", "subf")[index % 3]
        other = "%c" if index % 7 else f"%v{index // 2}"
        lines.append(f"    %v{index + 1} = arith.{operation} %v{index}, {other} : f32")
    lines += [f"    memref.store %v{operations}, %x[%t] : memref<?xf32>", "    gpu.return", "  }", "}"]
    return "\n".join(lines) + "\n"


def many_kernels(count):
    """One module of so many kernels: softmax and GELU by turns."""
    functions = []
    for seed in range(1, count + 1):
        names = ("gelu", "softmax")[seed % 2]
        found = re.search(rf"  gpu\.func @{names}_.*?\n  }}\n", module(seed), re.S)
        functions.append(found.group(0))
    return "gpu.module @many {\n" + "\n".join(functions) + "}\n"


class Run:
    """What one program took."""

    def __init__(self, seconds, cpu, memory):
        self.seconds, self.cpu, self.memory = seconds, cpu, memory


def run(command, environment=None, stdout=None):
    """Runs a program to its end; wall clock, processor seconds of it and its children, largest memory in MiB."""
    with tempfile.TemporaryFile() as errors:
        before = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=stdout or subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - before
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            text = errors.read().decode(errors="replace")[-2000:]
            sys.exit(f"{' '.join(map(str, command))}\nfailed with {process.returncode}:\n{text}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def rounds_of(count, alternatives):
    """Runs each alternative once per round after one round to warm the disk; {name: [Run]}."""
    results = {name: [] for name, _ in alternatives}
    for index in range(count + 1):
        turn = index % len(alternatives)
        for name, action in alternatives[turn:] + alternatives[:turn]:
            result = action()
            if index > 0:
                results[name].append(result)
    return results


def spread(values, unit=1e3, digits=0):
    """Median, smallest and largest."""
    low, middle, high = min(values) * unit, statistics.median(values) * unit, max(values) * unit
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def median(values):
    return statistics.median(values)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" for _ in head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


class Bench:
    def __init__(self, arguments, work):
        self.work, self.rounds, self.chip, self.amd = work, arguments.rounds, arguments.chip, arguments.amd_chip
        self.gpulower, self.measure = arguments.gpulower, arguments.measure
        self.cuda, self.llvm = pathlib.Path(arguments.cuda), pathlib.Path(arguments.llvm) / "bin"
        self.nvrtc = arguments.nvrtc
        self.cache = work / "tools"
        self.libdevice = self.cuda / "nvvm/libdevice/libdevice.10.bc"
        self.bitcode = pathlib.Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
        self.missing = []

    def write(self, name, text):
        path = self.work / name
        path.write_text(text)
        return path

    def kernels_in(self, path, count, what):
        """Every result is to hold the kernels."""
        data = path.read_bytes()
        found = sum(1 for seed in range(1, count + 1) for name in KERNELS if f"{name}_{seed}".encode() in data)
        if found != count * len(KERNELS):
            sys.exit(f"{what}: {found} of {count * len(KERNELS)} kernels are in {path}")

    # The programs, each as an action that makes one file or folder and checks it.

    def ours(self, source, count, emit, target, *more):
        out = self.work / f"ours-{emit}"

        def action():
            shutil.rmtree(out, ignore_errors=True)
            command = [self.gpulower, "compile", source, "--target", target, "--emit", emit, "-o", f"{out}/"]
            result = run([*command, "--no-cache", "--cache-dir", self.cache, *more])
            joined = self.work / "joined"
            joined.write_bytes(b"".join(path.read_bytes() for path in sorted(out.iterdir())))
            self.kernels_in(joined, count, f"gpulower {emit}")
            return result

        return action

    def mlir_opt(self, source, count, form):
        out = self.work / f"mlir-opt-{form}.mlir"
        features = f"cubin-chip={self.chip} cubin-features=+ptx80 cubin-format={form} opt-level=3"
        command = [self.llvm / "mlir-opt", source, f"--gpu-lower-to-nvvm-pipeline={features}", "-o", out]
        environment = {"CUDA_ROOT": str(self.cuda), "PATH": f"{self.cuda}/bin:{os.environ['PATH']}"}

        def action():
            result = run(command, environment)
            self.kernels_in(out, count, f"mlir-opt {form}")
            return result

        return action

    def mlir_opt_amd(self, source, count):
        toolkit = self.rocm()
        out = self.work / "mlir-opt-amd.mlir"
        lower = f"convert-scf-to-cf,convert-gpu-to-rocdl{{chipset={self.amd} runtime=HIP}},reconcile-unrealized-casts"
        pipeline = (
            f"builtin.module(rocdl-attach-target{{chip={self.amd} O=3}},gpu.module({lower}),"
            f"gpu-module-to-binary{{format=bin toolkit={toolkit}}})"
        )
        command = [self.llvm / "mlir-opt", source, f"--pass-pipeline={pipeline}", "-o", out]

        def action():
            result = run(command)
            self.kernels_in(out, count, "mlir-opt for AMD")
            return result

        return action

    def rocm(self):
        """What mlir-opt takes for a ROCm: lld, and AMD's libraries with a version of this chip, if Debian's have none."""
        root = self.work / "rocm"
        bitcode = root / "amdgcn/bitcode"
        if not bitcode.is_dir():
            bitcode.mkdir(parents=True)
            (root / "llvm/bin").mkdir(parents=True)
            (root / "llvm/bin/ld.lld").symlink_to(self.llvm / "ld.lld")
            for path in self.bitcode.glob("*.bc"):
                (bitcode / path.name).symlink_to(path)
            number = self.amd.removeprefix("gfx")
            version = bitcode / f"oclc_isa_version_{number}.bc"
            if not version.exists():
                value = int(number[:-2]) * 1000 + int(number[-2], 16) * 100 + int(number[-1], 16)
                text = f"@__oclc_ISA_version = linkonce_odr hidden addrspace(4) constant i32 {value}\n"
                source = self.write("isa.ll", f'target triple = "amdgcn-amd-amdhsa"\n{text}')
                run([self.llvm / "llvm-as", source, "-o", version])
        return root

    def nvcc(self, source, count, form):
        out = self.work / f"nvcc.{form}"
        command = [self.cuda / "bin/nvcc", "-O3", f"-arch={self.chip}", f"--{form}", source, "-o", out]

        def action():
            result = run(command)
            self.kernels_in(out, count, f"nvcc {form}")
            return result

        return action

    def clang(self, source, count, form):
        """Without CUDA's headers, which would be most of the time."""
        out = self.work / f"clang.{form}"
        command = [self.llvm / "clang++", "-x", "cuda", source, "--cuda-device-only", f"--cuda-gpu-arch={self.chip}"]
        command += [f"--cuda-path={self.cuda}", "-nocudainc", "-nocudalib", "-DNO_HEADERS", "-Wno-unknown-cuda-version"]
        command += ["-DERF=__nv_erff", "-DEXP=__nv_expf", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", self.libdevice]
        command += ["-O3", "-S" if form == "ptx" else "-c", "-o", out]

        def action():
            result = run(command)
            self.kernels_in(out, count, f"clang {form}")
            return result

        return action

    def clang_hip(self, source, count):
        out = self.work / "clang.hsaco"
        bitcode = self.rocm() / "amdgcn/bitcode"
        number = self.amd.removeprefix("gfx")
        libraries = ["ocml", "oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off"]
        libraries += ["oclc_correctly_rounded_sqrt_on", "oclc_wavefrontsize64_on", f"oclc_isa_version_{number}"]
        command = [self.llvm / "clang++", "-x", "hip", source, "--cuda-device-only", f"--offload-arch={self.amd}"]
        command += ["-nogpuinc", "-nogpulib", "-DNO_HEADERS", "-DERF=__ocml_erf_f32", "-DEXP=__ocml_exp_f32"]
        for library in libraries:
            command += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode / f"{library}.bc"]
        command += ["-O3", "--no-gpu-bundle-output", "-o", out]

        def action():
            result = run(command)
            self.kernels_in(out, count, "clang for HIP")
            return result

        return action

    def in_process(self, *words):
        """What the program `measure` prints."""
        output = self.work / "measured.json"
        with output.open("wb") as file:
            run([self.measure, "measure", *words, "--cuda", self.cuda, "--tools", self.cache], stdout=file)
        return json.loads(output.read_text())

    # The parts of the report.

    def one_module(self):
        """One module of five kernels, each program started for it."""
        mlir, cu = self.write("one.mlir", module(1)), self.write("one.cu", module(1, "cu"))
        rows = []
        for form, upstream in (("ptx", "isa"), ("cubin", "bin"), ("fatbin", "fatbin")):
            programs = [
                ("gpulower", self.ours(mlir, 1, form, self.chip)),
                ("mlir-opt", self.mlir_opt(mlir, 1, upstream)),
            ]
            if form != "fatbin":
                programs.append(("clang, no headers", self.clang(cu, 1, form)))
            programs.append(("nvcc", self.nvcc(cu, 1, form)))
            rows += self.rows(f"{form}, {self.chip}", rounds_of(self.rounds, programs))
        programs = [
            ("gpulower", self.ours(mlir, 1, "hsaco", self.amd)),
            ("mlir-opt", self.mlir_opt_amd(mlir, 1)),
            ("clang -x hip, no headers", self.clang_hip(cu, 1)),
        ]
        rows += self.rows(f"hsaco, {self.amd}", rounds_of(self.rounds, programs))
        return table(["output", "program", "ms", "to gpulower", "MiB"], rows)

    def rows(self, label, results, unit=1e3, digits=0):
        base = median([result.seconds for result in results["gpulower"]])
        return [
            [
                label,
                name,
                spread([result.seconds for result in runs], unit, digits),
                f"{median([result.seconds for result in runs]) / base:.2f}",
                f"{max(result.memory for result in runs):.0f}",
            ]
            for name, runs in results.items()
        ]

    def sixty_four(self):
        """64 modules of five kernels in one file; one process each."""
        mlir = self.write("many.mlir", "\n".join(module(seed) for seed in range(1, 65)))
        rows = []
        rounds = max(1, self.rounds // 3)
        for form, upstream in (("ptx", "isa"), ("cubin", "bin"), ("fatbin", "fatbin")):
            programs = [
                ("gpulower", self.ours(mlir, 64, form, self.chip)),
                ("gpulower -j1", self.ours(mlir, 64, form, self.chip, "-j", "1")),
                ("mlir-opt", self.mlir_opt(mlir, 64, upstream)),
            ]
            rows += self.rows(f"{form}, {self.chip}", rounds_of(rounds, programs))
        programs = [
            ("gpulower", self.ours(mlir, 64, "hsaco", self.amd)),
            ("mlir-opt", self.mlir_opt_amd(mlir, 64)),
        ]
        rows += self.rows(f"hsaco, {self.amd}", rounds_of(rounds, programs))
        return table(["output", "program", "ms", "to gpulower", "MiB"], rows)

    def warm(self):
        """One module of five kernels again and again in one process, nothing kept in between."""
        mlir, cu = self.write("one.mlir", module(1)), self.write("one.cu", module(1, "cu"))
        rows = []
        for form in ("ptx", "cubin"):
            ours = self.in_process("warm", mlir, self.chip, form, self.rounds * 3)
            times = [("gpulower", ours["milliseconds"])]
            if self.nvrtc:
                output = self.work / "nvrtc.json"
                with output.open("wb") as file:
                    words = [sys.executable, HERE / "nvrtc.py", self.nvrtc, cu, self.chip, form, self.rounds * 3]
                    # It opens libnvrtc-builtins by name.
                    run(words, {"LD_LIBRARY_PATH": str(pathlib.Path(self.nvrtc).resolve().parent)}, stdout=file)
                times.append(("NVRTC", json.loads(output.read_text())["milliseconds"]))
            else:
                self.missing.append("NVRTC: name libnvrtc.so.13 with --nvrtc (wheel nvidia-cuda-nvrtc)")
            base = median(ours["milliseconds"])
            for name, values in times:
                rows.append([form, name, spread(values, 1, 1), f"{median(values) / base:.2f}"])
        stages = self.in_process("stages", mlir, self.chip, "cubin", self.rounds * 3)
        shares = [[stage, f"{milliseconds:.2f}"] for stage, milliseconds in stages.items()]
        return (
            table(["output", "library", "ms", "to gpulower"], rows)
            + "\n\nOurs by stage, to a cubin:\n\n"
            + table(["stage", "ms (median)"], shares)
        )

    def growth(self):
        """1 to 1,000 modules of five kernels to cubins, each an input of its own, in one process with every core."""
        folder = self.work / "modules"
        folder.mkdir()
        for seed in range(1, 1001):
            (folder / f"{seed:04}.mlir").write_text(module(seed))
        changed = self.write("changed.mlir", module(1001))
        rows = []
        for count in (1, 10, 100, 1000):
            shutil.rmtree(self.work / "results", ignore_errors=True)
            measured = self.in_process("growth", folder, changed, self.chip, "cubin", count, self.work / "results")
            rows.append(
                [count]
                + [
                    f"{measured[name]['milliseconds']:.{1 if measured[name]['milliseconds'] < 100 else 0}f}"
                    for name in ("cold", "filling", "memory", "disk", "changed", "alone")
                ]
                + [
                    f"{measured['cold']['processor'] / measured['cold']['milliseconds']:.2f}",
                    f"{measured['cold']['mebibytes']:.0f}",
                ]
            )
        head = ["modules", "cold, ms", "cold and kept", "from memory", "from disk", "one changed", "that one alone"]
        return table([*head, "cores used", "MiB"], rows)

    def large(self):
        """One kernel of 100,000 operations, and one module of 1,000 kernels, to a cubin and to PTX: once, without warming up,
        since some take minutes."""
        rows = []
        inputs = {
            "100,000 operations": (self.write("large.mlir", large_kernel(100_000)), 0),
            "1,000 kernels": (self.write("kernels.mlir", many_kernels(1000)), 0),
        }
        for label, (source, count) in inputs.items():
            for form, upstream in (("ptx", "isa"), ("cubin", "bin")):
                programs = [
                    ("gpulower", self.ours(source, count, form, self.chip)),
                    ("mlir-opt", self.mlir_opt(source, count, upstream)),
                ]
                if label == "1,000 kernels":
                    programs.insert(1, ("gpulower -j1", self.ours(source, count, form, self.chip, "-j", "1")))
                rows += self.rows(f"{label}, {form}", {name: [action()] for name, action in programs})
        return table(["input, output", "program", "ms", "to gpulower", "MiB"], rows)

    def sizes(self):
        """Bytes of one module of five kernels."""
        mlir, cu = self.write("one.mlir", module(1)), self.write("one.cu", module(1, "cu"))
        rows = []
        for form in ("cubin", "fatbin"):
            self.ours(mlir, 1, form, self.chip)()
            ours = sum(path.stat().st_size for path in (self.work / f"ours-{form}").iterdir())
            self.nvcc(cu, 1, form)()
            row = [form, ours, (self.work / f"nvcc.{form}").stat().st_size, ""]
            if form == "cubin":
                self.clang(cu, 1, form)()
                row[3] = (self.work / "clang.cubin").stat().st_size
            rows.append(row)
        self.ours(mlir, 1, "hsaco", self.amd)()
        self.clang_hip(cu, 1)()
        ours = sum(path.stat().st_size for path in (self.work / "ours-hsaco").iterdir())
        rows.append(["hsaco", ours, "", (self.work / "clang.hsaco").stat().st_size])
        return table(["form", "gpulower", "nvcc", "clang"], rows)

    def start(self):
        """Starting, and nothing else."""
        programs = [
            ("gpulower", lambda: run([self.gpulower, "--version"])),
            ("mlir-opt", lambda: run([self.llvm / "mlir-opt", "--version"])),
        ]
        return table(["output", "program", "ms", "to gpulower", "MiB"], self.rows("--version", rounds_of(self.rounds * 2, programs), digits=1))


PARTS = {
    "start": Bench.start,
    "one_module": Bench.one_module,
    "warm": Bench.warm,
    "sixty_four": Bench.sixty_four,
    "growth": Bench.growth,
    "large": Bench.large,
    "sizes": Bench.sizes,
}


def machine(bench):
    name = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    release = subprocess.run([bench.gpulower, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    ptxas = subprocess.run([bench.cuda / "bin/ptxas", "--version"], capture_output=True, text=True, check=True).stdout
    load = os.getloadavg()[0]
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores of {name}, load {load:.1f} at the end; {release}, LLVM 22, "
        f"ptxas {re.search(r'V([0-9.]+)', ptxas).group(1)}; {bench.rounds} rounds. Medians, with the smallest and the "
        "largest."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpulower", required=True, type=pathlib.Path, help="the release build")
    parser.add_argument("--measure", required=True, type=pathlib.Path, help="gpulower-checks, the release build")
    parser.add_argument("--cuda", required=True)
    parser.add_argument("--llvm", required=True)
    parser.add_argument("--nvrtc", help="libnvrtc.so.13")
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--amd-chip", default="gfx942")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--output", type=pathlib.Path, help="a file with marks, between which the tables go")
    arguments = parser.parse_args()
    text = arguments.output.read_text() if arguments.output else ""
    with tempfile.TemporaryDirectory(prefix="gpulower-compare-") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        for name in arguments.only or PARTS:
            section = PARTS[name](bench)
            print(f"\n{PARTS[name].__doc__}\n\n{section}", flush=True)
            text = replaced(text, name, section) if arguments.output else text
        about = machine(bench)
    print(f"\n{about}")
    for note in bench.missing:
        print(f"not measured: {note}")
    if arguments.output:
        if not arguments.only:
            text = replaced(text, "machine", about)
        arguments.output.write_text(text)


def replaced(text, name, section):
    begin, end = MARK.format(name), "<!-- end -->"
    head, found, rest = text.partition(begin)
    if not found or end not in rest:
        sys.exit(f"no place for {name}: the file needs the lines {begin} and {end}")
    return f"{head}{begin}\n\n{section}\n\n{end}{rest.split(end, 1)[1]}"


if __name__ == "__main__":
    main()
