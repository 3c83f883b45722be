"""Runs the kernels of interleave-run.mlir on this machine, from their device LLVM IR, and compares every element with
what the loops say.

    run_loops.py LLVM-BIN FILE.ll
"""

import ctypes
import pathlib
import re
import subprocess
import sys

SIZE = 64
MIDDLE = 24


def library(llvm, file):
    text = pathlib.Path(file).read_text()
    text = re.sub(r"^target (datalayout|triple).*$", "", text, flags=re.M)
    text = text.replace("ptx_kernel ", "")
    # What is for the device alone: attributes of its functions.
    text = re.sub(r'^attributes #\d+ = \{.*$', lambda match: match.group(0).split("{")[0] + "{ nounwind }", text, flags=re.M)
    host = pathlib.Path(file + ".host.ll")
    host.write_text(text)
    object_file, shared = file + ".o", file + ".so"
    subprocess.run([f"{llvm}/llc", "-O2", "-relocation-model=pic", "-filetype=obj", str(host), "-o", object_file], check=True)
    subprocess.run(["cc", "-shared", object_file, "-o", shared], check=True)
    return ctypes.CDLL(shared)


def wrap(value):
    return (value + 2**31) % 2**32 - 2**31


def load_first(memory, x, y, lower, upper, step):
    for i in range(lower, upper, step):
        memory[y + i] = wrap(3 * memory[x + i] + 1)


def store_first(memory, x, y, lower, upper, step):
    total = 0
    for i in range(lower, upper, step):
        memory[y + i] = i
        total = wrap(3 * total + memory[x + i])
    memory[y] = total


def both_ways(memory, x, y, lower, upper, _step):
    for i in range(lower, upper, 2):
        a, b = memory[x + i + 1], memory[y + i + 1]
        if a % 2:
            memory[x + i] = b
        else:
            memory[y + i] = wrap(a + 1)


def narrow(memory, x, y, lower, upper, step):
    for i in range(lower, upper, step):
        memory[y + i] = (3 * word(memory, x + 4 * i) + 1) % 256


def widen(memory, x, y, lower, upper, _step):
    total = 0
    for i in range(lower, upper, 2):
        memory[y + 4 * i : y + 4 * i + 4] = i.to_bytes(4, "little")
        total = 3 * total + memory[x + i]
    memory[y : y + 4] = (total % 2**32).to_bytes(4, "little")


def word(memory, at):
    return int.from_bytes(memory[at : at + 4], "little")


def memref(buffer, at):
    pointer = ctypes.c_void_p(ctypes.addressof(buffer) + at)
    return [pointer, pointer, *(ctypes.c_int64(value) for value in (0, SIZE - MIDDLE, 1))]


def run_bytes(loops):
    """Those with elements of two sizes, at distances in bytes."""
    runs = 0
    for reference in (narrow, widen):
        kernel = getattr(loops, reference.__name__)
        kernel.restype = None
        for distance in range(-90, 91):
            for step in (1, 2, 3):
                for upper in (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 18):
                    start = bytearray((77 * i * i + 13 * i + runs) % 256 for i in range(4 * SIZE))
                    expected = bytearray(start)
                    x = 4 * MIDDLE
                    reference(expected, x, x + distance, 0, upper, step)
                    buffer = (ctypes.c_ubyte * len(start))(*start)
                    bounds = [ctypes.c_int64(value) for value in (0, upper, step)]
                    kernel(*memref(buffer, x), *memref(buffer, x + distance), *bounds)
                    if bytearray(buffer) != expected:
                        sys.exit(f"{reference.__name__}: distance {distance} bytes, to {upper} by {step}:\n"
                                 f"{bytes(buffer).hex(' ')}\nwhere\n{expected.hex(' ')}\nis right")
                    runs += 1
    return runs


def main():
    loops = library(sys.argv[1], sys.argv[2])
    runs = run_bytes(loops)
    for reference in (load_first, store_first, both_ways):
        kernel = getattr(loops, reference.__name__)
        kernel.restype = None
        for distance in range(-20, 21):
            for step in (1, 2, 3):
                for lower in (0, 1):
                    for upper in range(-1, 19):
                        start = [wrap(7919 * i * i + 13 * i + runs) for i in range(SIZE)]
                        expected = list(start)
                        reference(expected, MIDDLE, MIDDLE + distance, lower, upper, step)
                        buffer = (ctypes.c_int32 * SIZE)(*start)
                        bounds = [ctypes.c_int64(value) for value in (lower, upper, step)]
                        kernel(*memref(buffer, 4 * MIDDLE), *memref(buffer, 4 * (MIDDLE + distance)), *bounds)
                        if list(buffer) != expected:
                            sys.exit(f"{reference.__name__}: distance {distance}, from {lower} to {upper} by {step}:\n"
                                     f"{list(buffer)}\nwhere\n{expected}\nis right")
                        runs += 1
    print(f"{runs} runs are right")


main()
