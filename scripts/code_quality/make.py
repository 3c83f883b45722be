#!/usr/bin/env python3
"""Compile what time_on_gpu.py times: the kernels of examples/ with gpulower, and their like in CUDA C++ with nvcc.

    make.py DIRECTORY [--gpulower PROGRAM] [--nvcc PROGRAM] [--include DIR] [--target sm_90]
            [--mlir-opt PROGRAM] [--variant NAME=OPTIONS ...]

Variants: `gpulower` with default options; `nvcc` with sizes of 64 bits, as MLIR's index has, and the number of threads
as a constant, as the kernels of examples/ state it. With --mlir-opt also `mlir-opt`: upstream's own pipeline. Each
--variant adds one: `--variant eight="gpulower --interleave 8"`, `--variant int="nvcc -DINDEX=int"`.

Needs no GPU. nvcc's mma.h needs the headers of CCCL, which a CUDA toolkit has in include/; of NVIDIA's wheels they are
nvidia-cuda-cccl: name its include directory with --include.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
KERNELS = ("saxpy", "gelu", "softmax", "layer_norm", "transpose", "matmul_tiled", "matmul_subgroup_mma", "reduction",
           "histogram")


def run(*words):
    words = [str(word) for word in words]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed:\n{(result.stderr or result.stdout)[:3000]}")
    return result.stdout


def with_gpulower(options, folder, words):
    for kernel in KERNELS:
        run(options.gpulower, "compile", EXAMPLES / f"{kernel}.mlir", "--target", options.target, "--emit", "cubin",
            *words, "-o", folder / f"{kernel}.cubin")
    return {"arguments": "memref", "index": 32 if "--index-bitwidth=32" in words else 64}


def with_nvcc(options, folder, words):
    includes = [f"-I{path}" for path in options.include]
    run(options.nvcc, "-O3", f"-arch={options.target}", "-cubin", *includes, *words, "-o", folder / "kernels.cubin",
        HERE / "kernels.cu")
    return {"arguments": "plain", "index": 32 if "-DINDEX=int" in words else 64}


def with_mlir_opt(options, folder, words):
    """Upstream's pipeline to PTX, and ptxas beside nvcc. The pipeline cannot lower `affine` in a kernel, nor matrices
    of the `gpu` dialect that an `scf.for` carries: both are lowered before."""
    ptxas = pathlib.Path(shutil.which(options.nvcc) or options.nvcc).with_name("ptxas")
    for kernel in KERNELS:
        assembly = run(options.mlir_opt, EXAMPLES / f"{kernel}.mlir",
                       "--pass-pipeline=builtin.module(gpu.module(lower-affine,convert-scf-to-cf),gpu-lower-to-nvvm-pipeline{"
                       f"cubin-chip={options.target} cubin-features=+ptx80 opt-level=3 cubin-format=isa}})", *words)
        # The PTX is a string attribute of gpu.binary, with its special characters as hexadecimal numbers.
        start = assembly.index('assembly = "') + len('assembly = "')
        text = assembly[start:assembly.index('"', start)]
        parts = text.split("\\")
        ptx = parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:])
        file = folder / f"{kernel}.ptx"
        file.write_text(ptx.rstrip("\0"))
        run(ptxas, "-O3", f"-arch={options.target}", file, "-o", folder / f"{kernel}.cubin")
    return {"arguments": "memref", "index": 64}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--gpulower", default="gpulower")
    root = os.environ.get("CUDA_ROOT") or os.environ.get("CUDA_HOME")
    parser.add_argument("--nvcc", default=f"{root}/bin/nvcc" if root else "nvcc")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--mlir-opt")
    parser.add_argument("--variant", action="append", default=[])
    options = parser.parse_args()

    makers = {"nvcc": with_nvcc, "gpulower": with_gpulower}
    asked = {"nvcc": ["nvcc"], "gpulower": ["gpulower"]}
    if options.mlir_opt:
        makers["mlir-opt"] = with_mlir_opt
        asked["mlir-opt"] = ["mlir-opt"]
    for variant in options.variant:
        name, _, words = variant.partition("=")
        words = words.split()
        if not name or not words or words[0] not in makers or name in asked:
            sys.exit(f"--variant {variant}: expected NAME=COMPILER [OPTIONS], with a new name, and one of "
                     f"{', '.join(makers)} as the compiler")
        asked[name] = words
    variants = {}
    for name, words in asked.items():
        folder = options.directory / name
        folder.mkdir(parents=True, exist_ok=True)
        variants[name] = makers[words[0]](options, folder, words[1:])
        print(f"made {folder}")
    (options.directory / "variants.json").write_text(json.dumps(variants, indent=2) + "\n")


if __name__ == "__main__":
    main()
