"""NVRTC in process: nvrtc.py LIBRARY SOURCE CHIP ptx|cubin ROUNDS prints the milliseconds of each round as JSON."""

import ctypes
import json
import sys
import time

library, source, chip, form, rounds = sys.argv[1:]
nvrtc = ctypes.CDLL(library)
text = open(source, "rb").read()
virtual = f"compute_{chip.removeprefix('sm_')}"
options = [f"--gpu-architecture={chip if form == 'cubin' else virtual}".encode()]


def check(status):
    if status != 0:
        sys.exit(f"NVRTC: error {status}")


def compile_once():
    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"five.cu", 0, None, None))
    array = (ctypes.c_char_p * len(options))(*options)
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    if status != 0:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    size = ctypes.c_size_t()
    kind = "CUBIN" if form == "cubin" else "PTX"
    check(getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
    out = ctypes.create_string_buffer(size.value)
    check(getattr(nvrtc, f"nvrtcGet{kind}")(program, out))
    check(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return out.raw


for _ in range(3):
    made = compile_once()
times = []
for _ in range(int(rounds)):
    before = time.perf_counter()
    again = compile_once()
    times.append((time.perf_counter() - before) * 1e3)
    if again != made:
        sys.exit("NVRTC: not the same bytes twice")
print(json.dumps({"milliseconds": times, "bytes": len(made)}))
