#!/usr/bin/env python3
"""Make what time_on_gpu.py runs: whole CUDA programs of others, with the kernels of nvcc and of gpulower.

    make.py DIRECTORY SOURCES --gpulower PROGRAM --cuda CUDA --cupti FOLDER [--clang PROGRAM] [--include FOLDER ...]
            [--variant NAME=PROGRAM ...] [--only PROGRAM ...] [--jobs N]

SOURCES is a folder of programs with a Makefile each, as `src` of https://github.com/zjin-lcf/HeCBench has them: what `make run`
would do says how they are compiled and called. Programs that need other libraries than CUDA's runtime, or data that is not there,
are left out. Each is built by nvcc with the runtime as a shared library; for each of its sources clang makes device IR, of which

    gpulower   makes a cubin
    upstream   llc and ptxas -O3 make one: what clang does

A variant adds one of another gpulower. Where the last argument of a program says how often it measures, it is 10, and sizes above four
million are a sixteenth. Prints what became of each program. Needs no GPU.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
REPETITIONS = {"100", "200", "1000", "10000", "100000", "1000000"}
LARGEST_SIZE = 4_000_000
LARGEST_FILE = 1_000_000
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")


class Failed(Exception):
    """A program that cannot be made, and why."""


class Maker:
    def __init__(self, options):
        self.options = options
        self.environment = {**os.environ, "CUDA_HOME": str(options.cuda),
                            "PATH": f"{options.cuda / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        self.includes = [f"-I{folder}" for folder in options.include]
        self.variants = {"gpulower": options.gpulower, **dict(variant.split("=", 1) for variant in options.variant)}

    def run(self, folder, *words):
        words = [str(word) for word in words]
        try:
            result = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, env=self.environment)
        except subprocess.TimeoutExpired:
            raise Failed(f"{words[0]} takes longer than five minutes") from None
        if result.returncode != 0:
            message = (result.stderr + result.stdout).strip().splitlines()
            errors = [line for line in message if "error" in line] or message[-1:]
            raise Failed(f"{pathlib.Path(words[0]).name}: {' '.join(errors)[:200]}")
        return result.stdout

    def plan(self, folder):
        """The options and the source of each compilation, and how the program is called."""
        compilations, call = [], None
        for line in self.run(folder, "make", "-n", "-B", "CC=NVCC", "ARCH=sm_90", "run").splitlines():
            try:
                words = shlex.split(line)
            except ValueError:
                raise Failed(f"cannot read: {line[:80]}") from None
            if not words or line.startswith("make"):
                continue
            if words[0] == "NVCC" and "-c" in words:
                compilations.append(words[1:])
            elif words[0] == "NVCC" and not any(word.endswith(SOURCES) for word in words):
                if libraries := [word for word in words if word.startswith("-l")]:
                    raise Failed(f"needs {' '.join(libraries)}")
            elif words[0].startswith("./"):
                call = call or words[1:]
            else:
                raise Failed(f"does something else: {line[:80]}")
        if not compilations or call is None:
            raise Failed("no compilation, or no call")
        if missing := [word for word in call if "/" in word and not (folder / word).exists()]:
            raise Failed(f"no {missing[0]}")
        return [self.split(words) for words in compilations], call

    @staticmethod
    def split(words):
        source = next(word for word in words if word.endswith(SOURCES))
        output = words.index("-o") if "-o" in words else len(words)
        return [word for i, word in enumerate(words) if word not in (source, "-c") and i not in (output, output + 1)], source

    def program(self, folder):
        name = folder.name.removesuffix("-cuda")
        out = self.options.directory / "programs" / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        try:
            compilations, call = self.plan(folder)
            objects, modules = [], []
            for options, source in compilations:
                objects.append(out / f"{len(objects)}.o")
                self.run(folder, "nvcc", *options, "-w", "-cudart", "shared", *self.includes, "-c", source, "-o", objects[-1])
                if source.endswith(".cu") or "-x" in options:
                    modules.append(out / f"{len(modules)}.bc")
                    self.device_code(folder, options, source, modules[-1])
            self.run(folder, "nvcc", "-arch=sm_90", "-cudart", "shared", *objects, "-o", out / "program", "-lm", "-lgomp",
                     "-Xlinker", "-s")
            made = [self.machine_code(module, out, number) for number, module in enumerate(modules)]
            if not any(made):
                raise Failed("no kernels")
            self.copy_data(folder, out, call)
            for path in objects + modules:
                path.unlink()
            return name, [self.smaller(word, word is call[-1]) for word in call], None
        except Failed as failed:
            shutil.rmtree(out)
            return name, None, str(failed)

    def device_code(self, folder, options, source, module):
        kept = [word for word in options if word.startswith(("-D", "-I", "-std"))]
        kept += ["-ffast-math"] if any("use_fast_math" in word for word in options) else []
        # clang includes a header of cuRAND that nothing needs.
        (self.options.directory / "include").mkdir(exist_ok=True)
        (self.options.directory / "include" / "curand_mtgp32_kernel.h").touch()
        self.run(folder, self.options.clang, "-x", "cuda", f"--cuda-path={self.options.cuda}", "--cuda-gpu-arch=sm_90", "-O3",
                 "--cuda-device-only", "-emit-llvm", "-w", *kept, f"-I{self.options.directory / 'include'}", *self.includes, "-c",
                 source, "-o", module)

    def machine_code(self, module, out, number):
        """False: the source has no kernels."""
        if ".entry" not in (text := self.run(out, "llc-22", "-O3", "-mcpu=sm_90", "-mattr=+ptx83", module, "-o", "-")):
            return False
        ptx = out / "module.ptx"
        ptx.write_text(text)
        self.run(out, "ptxas", "-O3", "-arch=sm_90", ptx, "-o", out / f"upstream.{number}.cubin")
        ptx.unlink()
        for name, program in self.variants.items():
            self.run(out, program, "compile", module, "--no-cache", "--target", "sm_90", "--emit", "cubin", "-o",
                     out / f"{name}.{number}.cubin")
        return True

    @staticmethod
    def copy_data(folder, out, call):
        for word in call:
            if (folder / word).is_file():
                if (folder / word).stat().st_size > LARGEST_FILE:
                    raise Failed(f"{word} is large")
                (out / word).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / word, out / word)

    @staticmethod
    def smaller(word, is_last):
        if is_last and word in REPETITIONS:
            return "10"
        return str(int(word) // 16) if word.isdigit() and int(word) > LARGEST_SIZE else word

    def preload(self):
        """The library that gives programs other code, and the one that it measures with."""
        shutil.copy(self.options.cupti / "lib" / "libcupti.so.13", self.options.directory)
        self.run(HERE, "cc", "-O2", "-shared", "-fPIC", HERE / "fatbins.c", "-o", self.options.directory / "fatbins.so",
                 f"-I{self.options.cupti / 'include'}", f"-I{self.options.cuda / 'include'}", f"-L{self.options.directory}",
                 "-l:libcupti.so.13", "-ldl")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("sources", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--gpulower", required=True)
    parser.add_argument("--cuda", required=True, type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--cupti", required=True, type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--clang", default="clang++-22")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    maker = Maker(options)
    maker.preload()
    folders = [folder for folder in sorted(options.sources.glob("*-cuda"))
               if not options.only or folder.name.removesuffix("-cuda") in options.only]
    if not folders:
        sys.exit(f"no folders *-cuda in {options.sources}")
    calls = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, call, reason in pool.map(maker.program, folders):
            print(f"{name}: {reason or 'made'}", flush=True)
            if call is not None:
                calls[name] = call
    (options.directory / "programs.json").write_text(json.dumps({"calls": calls, "variants": [*maker.variants, "upstream"]}, indent=1))
    print(f"{len(calls)} of {len(folders)} programs")


if __name__ == "__main__":
    main()
