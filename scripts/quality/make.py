#!/usr/bin/env python3
"""Make what time_on_gpu.py times: every kernel of kernels.py, written/ and linalg.mlir, by several compilers, as cubins.

    make.py DIRECTORY --gpulower PROGRAM --nvcc PROGRAM [--clang PROGRAM] [--mlir-opt PROGRAM] [--target sm_90]
            [--only KERNEL ...] [--variant NAME=OPTIONS ...] [--shapes FILE] [--kernels FOLDER]

For each kernel with a stated block size (`known_block_size`; `__launch_bounds__` and a constant) and without:

    nvcc       nvcc -O3 of the CUDA C++
    gpulower   the MLIR; --fp-contract=fast, since nvcc contracts too
    clang      with --clang: gpulower of clang's device IR, from the same CUDA C++

A variant adds one: `before="PROGRAM"` is another gpulower, `int="nvcc -DINDEX=int"` nvcc with other options, `two="gpulower
--interleave=2"` gpulower with other options. With --kernels there are those of FOLDER alone, in the form of written/, and its
cases.py for time_on_gpu.py. Prints registers and instructions of each, beside nvcc's. Needs no GPU.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import linalg
import twins
import written

FORMS = {"stated": True, "open": False}


def run(*words, **more):
    words = [str(word) for word in words]
    result = subprocess.run(words, capture_output=True, text=True, **more)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed:\n{(result.stderr or result.stdout)[:3000]}")
    return result.stdout


class Maker:
    def __init__(self, options):
        self.options, self.directory = options, options.directory
        self.variants = {"nvcc": ["nvcc"], "gpulower": ["gpulower"]}
        if options.clang:
            self.variants["clang"] = ["clang"]
        for variant in options.variant:
            name, _, words = variant.partition("=")
            self.variants[name] = words.split()

    def sources(self):
        shapes = json.loads(self.options.shapes.read_text()) if self.options.shapes else {}
        theirs = self.options.kernels
        kernels = written.read_kernels(shapes, theirs) if theirs else twins.read_kernels(shapes) + written.read_kernels(shapes)
        if self.options.mlir_opt and not theirs:
            kernels += linalg.read_kernels(shapes, self.options.mlir_opt)
        kernels = [kernel for kernel in kernels if not self.options.only or kernel.name in self.options.only]
        for form, stated in FORMS.items():
            texts = [kernel.texts(stated) for kernel in kernels]
            (self.directory / f"{form}.mlir").write_text("\n".join(mlir for mlir, _ in texts))
            (self.directory / f"{form}.cu").write_text(twins.C_HEADER + linalg.C_HEADER + "\n" + "\n".join(c for _, c in texts))
        description = {kernel.name: {"hidden": not theirs and twins.is_hidden(kernel.name), "block": kernel.block,
                                     "parameters": kernel.parameters, "sizes": kernel.sizes}
                       for kernel in kernels}
        (self.directory / "kernels.json").write_text(json.dumps(description, indent=1))
        return kernels

    def compile(self, name, form):
        words, folder = self.variants[name], self.directory / name / form
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        program, words = words[0], words[1:]
        if program == "nvcc":
            run(self.options.nvcc, "-O3", f"-arch={self.options.target}", "-cubin", *words, "-o", folder / "kernels.cubin",
                self.directory / f"{form}.cu")
            return {"arguments": "plain", "index": 32 if "-DINDEX=int" in words else 64}
        if program == "clang":
            device = self.directory / f"{form}.clang.ll"
            run(self.options.clang, "-x", "cuda", "-std=c++17", "-O3", f"--cuda-gpu-arch={self.options.target}",
                "--cuda-device-only", "-nocudainc", "-nocudalib", "-fms-extensions", "-Xclang", "-target-feature",
                "-Xclang", "+ptx80", "-S", "-emit-llvm", "-o", device, self.directory / f"{form}.cu")
            run(self.options.gpulower, "compile", device, "--no-cache", "--target", self.options.target, "--emit", "cubin", *words,
                "-o", folder / "kernels.cubin")
            return {"arguments": "plain", "index": 64}
        program = self.options.gpulower if program == "gpulower" else program
        run(program, "compile", self.directory / f"{form}.mlir", "--no-cache", "--target", self.options.target, "--emit",
            "cubin", "--fp-contract", "fast", *words, "-o", f"{folder}/")
        return {"arguments": "memref", "index": 64}

    def all(self):
        kernels = self.sources()
        made = {}
        for name in self.variants:
            for form in FORMS:
                made[name] = self.compile(name, form)
        (self.directory / "variants.json").write_text(json.dumps(made, indent=1))
        return kernels


def resources(disassembler, folder):
    """Registers and instructions by kernel."""
    found = {}
    for file in folder.glob("*.cubin"):
        kernel = None
        text = run(disassembler, "-sass", "-res-usage", file)
        for line in text.splitlines():
            if match := re.match(r"\s*Function (?:: )?(\w+):?", line):
                kernel = found.setdefault(match[1], {"registers": 0, "instructions": 0})
            elif match := re.search(r"REG:(\d+) STACK:(\d+)", line):
                kernel["registers"] = int(match[1])
            elif kernel is not None and re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?!NOP)\S", line) and "BRA `" not in line:
                kernel["instructions"] += 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--gpulower", required=True)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--clang")
    parser.add_argument("--mlir-opt", help="of LLVM 22: with the kernels of linalg.mlir")
    parser.add_argument("--shapes", type=pathlib.Path, help="sizes are constants, as time_on_gpu.py --shapes wrote them")
    parser.add_argument("--kernels", type=pathlib.Path, metavar="FOLDER", help="NAME.mlir and NAME.cu, and cases.py, in place of ours")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--hidden", action="store_true", help="print the kernels that are kept out of sight, too")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--variant", action="append", default=[])
    options = parser.parse_args()
    if options.kernels and not any(options.kernels.glob("*.mlir")):
        parser.error(f"--kernels: there is no kernel (NAME.mlir beside NAME.cu) in {options.kernels}")
    if options.kernels and options.mlir_opt:
        parser.error("--mlir-opt is for the kernels of linalg.mlir, which --kernels leaves out")
    options.directory.mkdir(parents=True, exist_ok=True)
    maker = Maker(options)
    kernels = maker.all()
    disassembler = pathlib.Path(options.nvcc).with_name("cuobjdump")
    names = list(maker.variants)
    if not options.hidden and not options.kernels:
        kernels = [kernel for kernel in kernels if not twins.is_hidden(kernel.name)]
    print(f"registers, instructions\n{'':30}" + "".join(f"{name:>14}" for name in names))
    for form in FORMS:
        each = {name: resources(disassembler, options.directory / name / form) for name in names}
        for kernel in kernels:
            row = [each[name].get(kernel.name, {"registers": 0, "instructions": 0}) for name in names]
            print(f"{kernel.name + ' ' + form:30}" + "".join(
                f"{part['registers']:8}{part['instructions']:6}" for part in row))


if __name__ == "__main__":
    main()
