#!/usr/bin/env python3
"""Runs LLVM IR for NVIDIA's chips on this machine's processor: the threads of a block as fibers (run_ir/runtime.c).

    DIFFER_HOST=$'scripts/run_ir.py' gpulower-checks differ host --target sm_90 --count 100

As a program it executes launches for `gpulower-checks differ host`: a line of JSON in, a line of JSON out. With the name of a file of MLIR it
prints the LLVM IR that upstream's own `gpu-lower-to-nvvm-pipeline` makes of it. scripts/check_loops.py uses it as a module. docs/lab/differential.md says what it is for.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

LLVM = Path(os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22")) / "bin"
RUNTIME = Path(__file__).parent / "run_ir" / "runtime.c"
LIMIT_S = 20

SHUFFLES = "\n".join(
    f"""define {{{of}, i1}} @nvvm.shfl.sync.{name}.{of.replace("float", "f32")}p(i32 %m, {of} %v, i32 %b, i32 %c) {{
  %bits = bitcast {of} %v to i32
  %both = call i64 @host_shuffle(i32 {mode}, i32 %m, i32 %bits, i32 %b, i32 %c)
  %low = trunc i64 %both to i32
  %value = bitcast i32 %low to {of}
  %high = lshr i64 %both, 32
  %valid = trunc i64 %high to i1
  %one = insertvalue {{{of}, i1}} poison, {of} %value, 0
  %two = insertvalue {{{of}, i1}} %one, i1 %valid, 1
  ret {{{of}, i1}} %two
}}
define {of} @nvvm.shfl.sync.{name}.{of.replace("float", "f32")}(i32 %m, {of} %v, i32 %b, i32 %c) {{
  %both = call {{{of}, i1}} @nvvm.shfl.sync.{name}.{of.replace("float", "f32")}p(i32 %m, {of} %v, i32 %b, i32 %c)
  %value = extractvalue {{{of}, i1}} %both, 0
  ret {of} %value
}}"""
    for mode, name in enumerate(["up", "down", "bfly", "idx"])
    for of in ["i32", "float"]
)


class Launch(NamedTuple):
    kernel: str
    blocks: int
    threads: int
    storages: list[bytes]
    # The number of a storage and an offset in it, or the bytes of a value.
    arguments: list[tuple[int, int] | bytes]


class Failure(Exception):
    """What cannot be compiled, or did not run to its end."""


def command(*words: str | Path, source: bytes = b"") -> bytes:
    made = subprocess.run([str(word) for word in words], input=source, capture_output=True, check=False, timeout=600)
    if made.returncode:
        raise Failure(f"{Path(words[0]).name}: {made.stderr.decode(errors='replace')[:1500]}")
    return made.stdout


def by_upstream(source: bytes) -> str:
    """The LLVM IR that upstream's own pipeline makes of MLIR."""
    pipeline = "--gpu-lower-to-nvvm-pipeline=cubin-chip=sm_90 cubin-features=+ptx80 cubin-format=llvm opt-level=0"
    lowered = command(LLVM / "mlir-opt", pipeline, source=source).decode()
    written = re.search(r'offload = "((?:[^"\\]|\\.)*)"', lowered)
    if not written:
        raise Failure("mlir-opt: no object")
    known = {"\\": b"\\", '"': b'"', "n": b"\n", "t": b"\t"}
    pieces = re.split(r'\\([0-9A-Fa-f]{2}|[\\"nt])', written[1])
    code = b"".join(
        part.encode("latin-1") if number % 2 == 0 else known.get(part) or bytes.fromhex(part) for number, part in enumerate(pieces)
    )
    library = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "nvvm/libdevice/libdevice.10.bc"
    if b"__nv_" in code and library.exists():
        code = command(LLVM / "llvm-link", "--only-needed", "-o", "-", "-", library, source=code)
    return command(LLVM / "llvm-dis", "-o", "-", "-", source=code).decode()


def retargeted(text: str) -> str:
    """The same module for this processor, with a function `launch.K` that takes the arguments of the kernel K from memory."""
    wrappers = []
    for kernel, parameters in re.findall(r"^define[^@\n]*\bptx_kernel\b[^@\n]*@([\w.$]+)\((.*)\)[^)\n]*\{$", text, re.MULTILINE):
        depth, types, word = 0, [], ""
        for letter in parameters + ",":
            depth += (letter in "([<{") - (letter in ")]>}")
            if letter == "," and depth == 0:
                types.append(re.match(r"\s*(<[^>]*>|\[[^\]]*\]|\w+)", word))
                word = ""
            else:
                word += letter
        loads, given = [], []
        for slot, one in enumerate(types):
            if one:
                loads.append(f"  %p{slot} = getelementptr i64, ptr %from, i64 {slot}\n  %a{slot} = load {one[1]}, ptr %p{slot}")
                given.append(f"{one[1]} %a{slot}")
        body = "\n".join(loads)
        wrappers.append(f"define void @launch.{kernel}(ptr %from) {{\n{body}\n  call void @{kernel}({', '.join(given)})\n  ret void\n}}")
    text = re.sub(r"^target (triple|datalayout) = .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r" addrspace\(\d+\)", "", text).replace("addrspacecast", "bitcast")
    text = re.sub(r"\bptx_(kernel|device) ", "", text)
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", text)
    text = re.sub(r"\.p[1-9]\d*(?=[.(]|i\d)", ".p0", text).replace("@llvm.nvvm.", "@nvvm.")
    text = re.sub(r"@nvvm\.(fabs\.f\d+)", r"@llvm.\1", text)
    # NVIDIA's `round` is to the nearest, ties to even.
    others = {"sqrt.rn": "sqrt", "fma.rn": "fma", "round": "rint", "fmin": "minnum", "fmax": "maxnum"}
    for nvidia in ["floor", "ceil", "trunc", *others]:
        for of, kind in [("f", "f32"), ("d", "f64")]:
            text = re.sub(rf"@nvvm\.{nvidia}\.{of}\b", f"@llvm.{others.get(nvidia, nvidia)}.{kind}", text)
    # Workgroups' memory of a size that the launch says.
    text = re.sub(r"= external( local_unnamed_addr| unnamed_addr)? global \[0 x i8\]", "= internal global [65536 x i8] zeroinitializer", text)
    lines, declared = [], set()
    for line in text.splitlines():
        if line.startswith("declare"):
            name = re.search(r"@[\w.$]+", line)
            if name and (name[0] in declared or name[0].startswith("@nvvm.shfl.sync.")):
                continue
            declared.add(name[0] if name else line)
        lines.append(line)
    text = "\n".join(lines + wrappers)
    if "@nvvm.shfl.sync." in text:
        text += "\ndeclare i64 @host_shuffle(i32, i32, i32, i32, i32)\n" + SHUFFLES
    return text


class Program:
    """A module as a program of this machine."""

    def __init__(self, text: str, folder: Path, optimize: str = "-O0") -> None:
        self.path = folder / "program"
        runtime, source = folder.parent / "runtime.o", folder / "module.ll"
        if not runtime.exists():
            command(LLVM / "clang", "-O1", "-c", RUNTIME, "-o", runtime)
        source.write_text(retargeted(text))
        command(LLVM / "llc", optimize, "-filetype=obj", "-relocation-model=pic", source, "-o", folder / "module.o")
        command(LLVM / "clang", "-rdynamic", folder / "module.o", runtime, "-lm", "-ldl", "-o", self.path)

    def run(self, launches: list[Launch]) -> list[list[bytes] | str]:
        """What is in the storages after each launch, or why it stopped."""
        found: list[list[bytes] | str] = []
        while len(found) < len(launches):
            rest = launches[len(found) :]
            request = b"".join(map(encoded, rest))
            try:
                made = subprocess.run([self.path], input=request, capture_output=True, check=False, timeout=LIMIT_S)
                output, status = made.stdout, f"status {made.returncode}"
            except subprocess.TimeoutExpired as late:
                output, status = late.stdout or b"", "it does not end"
            at = 0
            for launch in rest:
                if at + 4 > len(output):
                    break
                (said,) = struct.unpack_from("<I", output, at)
                at += 4
                if said:
                    found.append(output[at : at + said].decode())
                    at += said
                    continue
                storages = []
                for storage in launch.storages:
                    storages.append(output[at : at + len(storage)])
                    at += len(storage)
                found.append(storages)
            if len(found) < len(launches):
                found.append(status)
        return found


def encoded(launch: Launch) -> bytes:
    name = launch.kernel.encode()
    parts = [struct.pack("<I", len(name)), name, struct.pack("<III", launch.blocks, launch.threads, len(launch.storages))]
    for storage in launch.storages:
        parts += [struct.pack("<I", len(storage)), storage]
    parts.append(struct.pack("<I", len(launch.arguments)))
    for argument in launch.arguments:
        if isinstance(argument, bytes):
            parts += [struct.pack("<I", len(argument)), argument]
        else:
            parts.append(struct.pack("<III", 0, *argument))
    return b"".join(parts)


def answer(request: dict[str, Any], folder: Path, known: dict[str, Program | str]) -> dict[str, Any]:
    image: bytes = Path(request["image"]).read_bytes()
    key = f"{hash(image)}"
    if key not in known:
        known.clear()
        try:
            known[key] = Program(image.decode(), folder)
        except Failure as failure:
            known[key] = str(failure)
    program = known[key]
    if isinstance(program, str):
        return {"trap": program}
    storages = [bytes.fromhex(content) for content, _ in request["storages"]]
    arguments = [(given, 0) if isinstance(given, int) else bytes.fromhex(given) for given in request["arguments"]]
    (ran,) = program.run([Launch(request["kernel"], request["blocks"], request["threads"], storages, arguments)])
    return {"trap": ran} if isinstance(ran, str) else {"storages": [storage.hex() for storage in ran]}


def main() -> None:
    if len(sys.argv) == 2:
        try:
            print(by_upstream(Path(sys.argv[1]).read_bytes()))
        except Failure as failure:
            sys.exit(str(failure))
        return
    known: dict[str, Program | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        modules = Path(folder) / "modules"
        modules.mkdir()
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), modules, known)), flush=True)


if __name__ == "__main__":
    main()
