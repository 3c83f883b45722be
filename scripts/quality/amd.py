#!/usr/bin/env python3
"""Compare gpulower with clang -O3, as hipcc runs it, on the kernels of make.py for AMD chips: instructions, and executed ones.

    amd.py DIRECTORY --gpulower PROGRAM --llvm DIRECTORY --libraries DIRECTORY [--target gfx942,gfx1100] [--only KERNEL ...]
           [--output docs/code-quality.md] [--kernels docs/lab/code-quality.md] [--processes N]

    clang      clang -O3 of the HIP C++, with AMD's device libraries
    same       gpulower of what clang's front end makes of that source, before any pass of LLVM's
    mlir       gpulower of the MLIR twin; --fp-contract=fast, since clang contracts too

Each is executed by the interpreter of tests/amd on the inputs of cases.py at small sizes, and its results are checked first.
Needs numpy and what the interpreter needs, and no GPU.
"""

import argparse
import ast
import collections
import concurrent.futures
import functools
import math
import pathlib
import re
import statistics
import subprocess
import sys
import types

import linalg
import numpy as np
import table
import twins
import written
from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Buffer, Pointer, execute, memref
from amdexec.traps import Trap
from twins import three

FORMS = {"stated": True, "open": False}
NAMES = ("clang", "same", "mlir")
#: Kernels that take it for granted that a subgroup has 32 lanes. `gpu.shuffle` says nothing of the others, in waves of 64.
OF_32_LANES = ("row_argmax", "warp_scan", "csr_warps", "add_rms_norm_bf16", "alibi_softmax", "gemv_int4", "scan_i64_rows")
MARKS = "<!-- made by cargo xtask quality amd -->", "<!-- end of amd -->"
#: Without a meaning for the result, and made by the assembler or for speed.
NOT_COUNTED = ("s_nop", "s_code_end", "s_delay_alu", "s_clause")

#: Kernels of which so many more instructions are carried out have a line in the table.
SHOWN = 1.05

#: What ocml asks about the chip and the options: https://github.com/ROCm/llvm-project/tree/amd-staging/amd/device-libs.
CONTROLS = {"ABI_version": ("i32", 500), "finite_only_opt": ("i8", 0), "unsafe_math_opt": ("i8", 0), "daz_opt": ("i8", 0),
            "correctly_rounded_sqrt32": ("i8", 1)}

#: How a method of cases.Maker is called for sizes that an interpreter executes in a second or two.
SMALL = {
    "layer_norm": {"rows": 1, "cols": 3000}, "rms_norm_f16": {"rows": 1, "cols": 4096}, "softmax_rows": {"rows": 1, "cols": 3000},
    "cross_entropy": {"rows": 1, "cols": 3000}, "gemv": {"m": 2, "n": 2000}, "attention_row": {"rows": 1, "keys": 512},
    "row_argmax": {"rows": 2, "cols": 1000}, "stencil_2d": {"h": 17, "w": 65}, "stencil_3d": {"d": 5, "h": 9, "w": 34},
    "stencil_3d_march": {"d": 12, "h": 9, "w": 34}, "stencil_3d_rotate": {"d": 12, "h": 9, "w": 34},
    "fdtd_1d": {"cells": 128, "steps": 40}, "conv_2d": {"oh": 9, "ow": 40, "k": 5}, "conv_1d_direct": {"m": 300},
    "depthwise_f16": {"c": 1}, "max_pool": {"c": 1, "oh": 9, "ow": 33}, "block_sums": {"n": 9001, "blocks": 2},
    "dot_f64": {"n": 8192}, "column_sums": {"rows": 40, "cols": 300}, "histogram_shared": {"n": 4096}, "scan_blocks": {"n": 500},
    "warp_scan": {"n": 512}, "batched_matmul_8": {"batch": 4}, "batched_matvec": {"batch": 10},
    "tridiagonal": {"n": 16, "systems": 128}, "mandelbrot": {"h": 16, "w": 32}, "black_scholes": {"n": 1500},
    "gelu_chain": {"n": 2, "m": 300}, "swiglu_f16": {"n": 3000}, "adam": {"n": 500}, "rope": {"tokens": 2, "heads": 4},
    "quantize": {"rows": 1, "cols": 3000}, "gather_rows": {"words": 50, "dim": 768, "n": 2}, "transpose_odd": {"rows": 35, "cols": 37},
    "transpose_plain": {"rows": 35, "cols": 37}, "monte_carlo": {"n": 256, "rounds": 60}, "bitonic": {"blocks": 1},
    "group_norm": {"n": 1, "g": 2, "cg": 4, "hw": 300}, "nearest_centroid": {"n": 256, "k": 20}, "ell_rows": {"width": 8, "n": 512},
    "bilinear": {"h": 15, "w": 17, "oh": 29, "ow": 31}, "gray_packed": {"n": 2053}, "hash_rounds": {"n": 256, "rounds": 8},
    "horner": {"n": 512, "m": 8}, "jacobi_f64": {"h": 19, "w": 35}, "running_max": {"steps": 20, "n": 256},
    "blur_tile": {"rows": 40, "cols": 130}, "floyd_step": {"n": 80}, "lj_forces": {"n": 256, "m": 8}, "gemv_i8": {"m": 4, "n": 400},
    "embedding_bag": {"bags": 2, "words": 50, "dim": 256}, "softmax_warp": {"rows": 8, "cols": 100},
    "fft_stage": {"batch": 1, "n": 1024, "half": 64}, "lstm_cell": {"b": 2, "h": 100}, "welford_columns": {"rows": 20, "cols": 256},
    "causal_softmax": {"n": 6}, "search_sorted": {"m": 100, "n": 512}, "im2col": {"c": 2, "oh": 10, "ow": 11},
    "matvec_columns": {"m": 300, "n": 40}, "sgd_f16": {"n": 1033}, "collatz": {"n": 256}, "ratio_columns": {"rows": 20, "cols": 256},
    "root_rows": {"rows": 2, "cols": 300}, "weighted_mean": {"n": 256, "k": 8}, "pointer_mean": {"n": 256, "k": 8},
    "block_csr": {"n": 100, "each": 4}, "argmin_columns": {"rows": 20, "cols": 256}, "clip_count": {"rows": 20, "cols": 256},
    "bisect_root": {"n": 256}, "row_scan": {"rows": 20, "cols": 256}, "window_mean": {"h": 12, "w": 40, "r": 2},
    "moments_columns": {"rows": 20, "cols": 256}, "nearest_point": {"n": 256, "m": 20}, "rank_update": {"n": 40, "k": 32},
    "equal_bytes": {"n": 4096}, "log_sum_exp_columns": {"rows": 20, "cols": 256}, "wave_sum": {"n": 256, "k": 8},
    "dot_rows_f64": {"rows": 20, "cols": 256}, "power_mod": {"n": 256}, "four_columns": {"n": 256, "m": 20}, "leapfrog": {"n": 1000},
    "median_of_nine": {"h": 10, "w": 40}, "causal_row": {"n": 300}, "complex_dot": {"rows": 20, "cols": 256},
    "norm_backward": {"rows": 20, "cols": 256}, "kahan_columns": {"rows": 20, "cols": 256}, "table_lookup": {"n": 1000, "size": 64},
    "first_above": {"rows": 20, "cols": 256}, "scale_rows_f16": {"rows": 2, "cols": 300}, "matmul_nt": {"m": 20, "n": 20, "k": 30},
    "matmul_tn": {"m": 20, "n": 20, "k": 30}, "axpy_three": {"n": 1000}, "batch_norm": {"n": 1, "c": 2, "hw": 300},
    "channel_sums": {"n": 2, "c": 3, "hw": 200}, "upsample": {"h": 10, "w": 31}, "outer_products": {"n": 256, "k": 8},
    "soft_threshold": {"n": 1000}, "linalg_matmul": {"m": 20, "n": 33, "k": 64}, "linalg_matmul_f16": {"m": 20, "n": 33, "k": 64},
    "linalg_matmul_i8": {"m": 20, "n": 33, "k": 64}, "linalg_batch_matmul": {"batch": 2, "m": 12, "n": 17, "k": 64},
    "linalg_matvec": {"m": 300, "n": 64}, "linalg_vecmat": {"m": 64, "n": 300}, "linalg_conv_1d": {"n": 300, "taps": 33},
    "linalg_conv_2d": {"h": 20, "w": 40}, "linalg_depthwise": {"n": 1, "h": 8, "w": 8, "c": 8},
    "linalg_max_pool": {"n": 1, "h": 8, "w": 8, "c": 8}, "linalg_row_sums": {"rows": 300, "cols": 64},
    "linalg_column_sums": {"rows": 64, "cols": 300}, "linalg_column_max": {"rows": 64, "cols": 300},
    "linalg_transpose": {"rows": 40, "cols": 35}, "linalg_exp_rows": {"rows": 10, "cols": 70}, "linalg_normalise": {"rows": 10, "cols": 70},
    "linalg_gelu": {"n": 1000}, "linalg_bias_relu": {"rows": 10, "cols": 70}, "linalg_distances": {"n": 20, "m": 33, "k": 32},
    "kl_divergence": {"rows": 1, "cols": 900}, "add_rms_norm_bf16": {"rows": 1, "cols": 1000}, "gemv_int4": {"m": 5, "n": 512},
    "softmax_backward_f16": {"rows": 1, "cols": 1000}, "moe_top2": {"tokens": 130, "experts": 8}, "focal_loss": {"n": 1500},
    "silu_backward_bf16": {"n": 1500}, "alibi_softmax": {"heads": 2, "n": 21}, "quantize_absmax": {"rows": 1, "cols": 1000},
    "stencil_27": {"d": 4, "h": 6, "w": 35}, "wave_step": {"h": 13, "w": 37}, "jacobi_tile": {"h": 19, "w": 20},
    "coo_spmv": {"n": 200, "nnz": 2000}, "small_lu": {"n": 129}, "fft_256": {"batch": 1}, "philox": {"n": 500},
    "runge_kutta": {"n": 133, "steps": 4}, "kepler": {"n": 133}, "bilateral": {"h": 19, "w": 18, "r": 2}, "sobel_u8": {"h": 17, "w": 35},
    "rgb_to_yuv": {"n": 1025}, "bicubic": {"h": 14, "w": 16}, "hysteresis": {"h": 18, "w": 35}, "unpack_bits": {"n": 1000},
    "crc32_rows": {"rows": 130, "most": 24}, "scan_i64_rows": {"rows": 1, "cols": 700}, "run_heads": {"n": 900},
    "radix_counts": {"n": 2001, "blocks": 2}, "string_match": {"n": 600, "m": 5}, "bloom_probe": {"n": 1000, "words": 64},
    "conv_2d_static": {}, "matmul_naive": {}, "matmul_shared": {}, "csr_rows": {}, "csr_warps": {}, "n_body": {}, "n_body_plain": {},
}  # fmt: skip
#: Grids of fewer blocks, where a method fixes them for a GPU; the kernels step by the size of the grid.
GRIDS = {"dot_f64": (2,), "histogram_shared": (2,), "black_scholes": (1,), "swiglu_f16": (1,), "conv_2d_static": (1, 2, 2),
         **dict.fromkeys(("focal_loss", "silu_backward_bf16", "coo_spmv", "rgb_to_yuv", "unpack_bits", "bloom_probe"), (2,))}


def small_case(name):
    """A launch with its references, made by cases.py with numpy in the place of CuPy."""
    special = types.ModuleType("cupyx.scipy.special")
    special.erf = np.vectorize(math.erf)
    sys.modules.setdefault("cupy", np)
    for module in ("cupyx", "cupyx.scipy"):
        sys.modules.setdefault(module, types.ModuleType(module))
    sys.modules.setdefault("cupyx.scipy.special", special)
    import cases

    maker = cases.Maker(1)
    fixed = {"matmul_naive": lambda: maker.product(16, 33, 35, 60), "matmul_shared": lambda: maker.product(16, 33, 35, 60),
             "csr_rows": lambda: maker.sparse(lambda n: n, 200, 12), "csr_warps": lambda: maker.sparse(lambda n: 32 * n, 40, 24),
             "n_body": lambda: maker.bodies(256, 256), "n_body_plain": lambda: maker.bodies(128, 128)}
    case = fixed[name]() if name in fixed else getattr(maker, name)(**SMALL.get(name, {}))
    case.grid = GRIDS.get(name, case.grid)
    return case


class Executed:
    """One kernel of one code object: how many instructions waves carried out, and what was wrong."""

    def __init__(self, kernel, case, image, target, plain):
        buffers, arguments = [], []
        for name, _, dimensions in kernel.parameters:
            value = case.arguments[name]
            if dimensions is None:
                arguments.append(np.asarray(value).tobytes())
                continue
            buffers.append(Buffer(name, np.ascontiguousarray(value), writable=name in case.expected or writes(kernel, name)))
            arguments += [Pointer(name)] if plain else memref(name, buffers[-1].array)
        if plain:
            arguments += [np.int64(case.arguments[array].shape[at]).tobytes() for _, array, at in kernel.sizes]
        geometry = Geometry(three(case.grid), three(kernel.block))
        result = execute(codeobject.read(image, target), kernel.name, geometry, buffers, arguments, seed=1)
        self.instructions, self.outputs = result.instructions, result.outputs


@functools.cache
def all_kernels(llvm):
    """Those that an interpreter executes in time."""
    kernels = twins.read_kernels({}) + written.read_kernels({}) + linalg.read_kernels({}, llvm / "bin/mlir-opt")
    return [kernel for kernel in kernels if kernel.name in SMALL]


def writes(kernel, array):
    """Whether a kernel stores to an array: some have arrays for what is between, without a reference."""
    if not isinstance(kernel, twins.Kernel):
        return False
    stores = (node.targets[0] if isinstance(node, ast.Assign) else node.target
              for node in ast.walk(kernel.function) if isinstance(node, (ast.Assign, ast.AugAssign)))
    return any(isinstance(store, ast.Subscript) and store.value.id == array for store in stores)


def problem(case, outputs, first, name):
    """What is wrong in the outputs; those without a reference are compared with the first compiler's."""
    for array, expected in case.expected.items():
        found = case.values(array, outputs[array])
        reference = (first[array] if expected is None else expected).astype(np.float64)
        if name in GRIDS and reference.size > 4096:
            # Fewer blocks: what they did not write is as it was.
            reference = np.where(found == case.before[array], found, reference)
        error = np.linalg.norm((found - reference).ravel()) / max(np.linalg.norm(reference.ravel()), 1e-300)
        tolerance = case.own.get(array, case.tolerance)
        if not error <= max(tolerance, 1e-5 if reference.dtype.kind == "f" and tolerance else 0):
            return f"{array} has a relative error of {error:.1e}"
    return ""


def run(*words):
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\nfailed:\n{(done.stderr or done.stdout)[:3000]}")
    return done.stdout


class Maker:
    def __init__(self, options):
        self.options, self.directory = options, options.directory

    def controls(self, target):
        """A module with the constants that hipcc links beside ocml."""
        number = target.removeprefix("gfx")
        version = int(number[:-2]) * 1000 + int(number[-2]) * 100 + int(number[-1], 16)
        values = {**CONTROLS, "ISA_version": ("i32", version), "wavefrontsize64": ("i8", int(target.startswith("gfx9")))}
        lines = [f"@__oclc_{name} = linkonce_odr hidden addrspace(4) constant {kind} {value}" for name, (kind, value) in values.items()]
        text, made = self.directory / f"{target}.controls.ll", self.directory / f"{target}.controls.bc"
        text.write_text("\n".join(lines))
        run(self.options.llvm / "bin/llvm-as", text, "-o", made)
        return made

    def make(self, kernels, target, form):
        """The code objects by name; for `mlir` by kernel."""
        folder = self.directory / target / form
        (folder / "mlir").mkdir(parents=True, exist_ok=True)
        texts = [kernel.texts(FORMS[form]) for kernel in kernels]
        (folder / "kernels.mlir").write_text("\n".join(mlir for mlir, _ in texts))
        (folder / "kernels.hip").write_text(twins.C_HEADER + linalg.C_HEADER + "\n" + "\n".join(c for _, c in texts))
        clang = [self.options.llvm / "bin/clang++", "-x", "hip", "-std=c++17", "-O3", f"--offload-arch={target}", "--cuda-device-only",
                 "-nogpuinc", "-nogpulib", "-fms-extensions", "-I", pathlib.Path(__file__).parent, folder / "kernels.hip"]
        link = [word for library in (self.options.libraries / "ocml.bc", self.controls(target))
                for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", library)]
        run(*clang, *link, "-Wno-linker-warnings", "--no-gpu-bundle-output", "-o", folder / "clang.hsaco")
        run(*clang, "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", "-o", folder / "same.ll")
        compile = [self.options.gpulower, "compile", "--no-cache", "--target", target]
        run(*compile, folder / "same.ll", "-o", folder / "same.hsaco")
        # As HIP has it.
        run(*compile, folder / "kernels.mlir", "--fp-contract", "fast", "--coarse-grained-memory", "-o", f"{folder / 'mlir'}/")
        return {"clang": lambda kernel: folder / "clang.hsaco", "same": lambda kernel: folder / "same.hsaco",
                "mlir": lambda kernel: next(iter((folder / "mlir").glob(f"{kernel}.{target}*")))}


def instructions(options, image):
    """How many a code object has, by kernel."""
    counted, kernel = collections.Counter(), ""
    for line in run(options.llvm / "bin/llvm-objdump", "-d", "--no-show-raw-insn", image).splitlines():
        if match := re.match(r"[0-9a-f]+ <(.*)>:", line):
            kernel = match[1]
        elif line.startswith("\t") and line.split()[0] not in NOT_COUNTED:
            counted[kernel] += 1
    return counted


def execute_one(llvm, target, form, name, images):
    """Executed instructions of each, and what is wrong."""
    kernel = next(kernel for kernel in all_kernels(llvm) if kernel.name == name)
    case, counts, first = small_case(name), {}, {}
    for who, image in images.items():
        try:
            done = Executed(kernel, case, image, target, plain=who != "mlir")
        except Trap as trap:
            return counts, f"{name} {form} on {target} by {who}: {trap}"
        counts[who] = done.instructions
        first = first or done.outputs
        if wrong := problem(case, done.outputs, first, name):
            return counts, f"{name} {form} on {target} by {who}: {wrong}"
    return counts, ""


def mean(ratios):
    return f"{statistics.geometric_mean(ratios):.3f}" if ratios else "-"


def means(rows):
    lines = ["| chip | block size | kernels | same source: instructions | executed | MLIR: instructions | executed |", "|---|---|---|---|---|---|---|"]
    for target, form in dict.fromkeys((row["target"], row["form"]) for row in rows):
        chosen = [row for row in rows if (row["target"], row["form"]) == (target, form)]
        cells = [mean([row[kind][who] / row[kind]["clang"] for row in chosen]) for who in ("same", "mlir") for kind in ("size", "count")]
        lines.append(f"| {target} | {form} | {len(chosen)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def slower(rows):
    """The kernels of which more than SHOWN times as many instructions are carried out."""
    lines = ["| kernel | block size | chip | clang: instructions, executed | same source | MLIR |", "|---|---|---|---|---|---|"]
    for row in rows:
        ratios = {who: [row[kind][who] / row[kind]["clang"] for kind in ("size", "count")] for who in ("same", "mlir")}
        if any(executed > SHOWN for _, executed in ratios.values()):
            cells = ["{:.3f}, {:.3f}".format(*ratios[who]) for who in ("same", "mlir")]
            base = f"{row['size']['clang']}, {row['count']['clang']}"
            lines.append(f"| {row['kernel'].replace('_', ' ')} | {row['form']} | {row['target']} | {base} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--gpulower", required=True)
    parser.add_argument("--llvm", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--target", type=lambda text: text.split(","), default=["gfx942", "gfx1100"])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--output", type=pathlib.Path, help="a page for the means")
    parser.add_argument("--kernels", type=pathlib.Path, help="a page for the kernels that execute more instructions")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    kernels = [kernel for kernel in all_kernels(options.llvm) if not options.only or kernel.name in options.only]
    rows, futures, wrong = [], [], []
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        for target in options.target:
            for form in FORMS:
                made = Maker(options).make(kernels, target, form)
                sizes = {who: instructions(options, made[who]("")) for who in ("clang", "same")}
                for kernel in kernels:
                    if kernel.name in OF_32_LANES and target.startswith("gfx9"):
                        continue
                    images = {who: made[who](kernel.name) for who in NAMES}
                    sizes["mlir"] = instructions(options, images["mlir"])
                    row = {"kernel": kernel.name, "form": form, "target": target}
                    row["size"] = {who: sizes[who][kernel.name] for who in NAMES}
                    rows.append(row)
                    futures.append(pool.submit(execute_one, options.llvm, target, form, kernel.name, images))
        for row, future in zip(rows, futures, strict=True):
            row["count"], said = future.result()
            wrong += [said] if said else []
            cells = "".join(f"{row['size'][who]:8}{row['count'].get(who, 0):8}" for who in NAMES)
            print(f"{row['kernel']:20}{row['form']:8}{row['target']:8}{cells}", flush=True)
    print("\n".join(wrong))
    complete = [row for row in rows if len(row["count"]) == len(NAMES)]
    texts = [(options.output, means(complete)), (options.kernels, slower(complete))]
    print(*(text for _, text in texts), sep="\n")
    table.put(parser, MARKS, {path: text for path, text in texts if path})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
