#!/usr/bin/env python3
"""CUDA C++ to PTX by NVRTC of a Python package, for `cargo xtask inputs`: nvrtc_ptx.py FOLDER SOURCE PTX"""

import ctypes
import pathlib
import sys


def main(folder: str, source: str, output: str) -> None:
    [library] = [path for path in pathlib.Path(folder).rglob("libnvrtc.so*") if "alt" not in path.name]
    # It looks for its built-in functions as the loader does.
    for builtins in library.parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(library))

    def call(name: str, *arguments: object) -> None:
        status = getattr(nvrtc, name)(*arguments)
        if status:
            log = ctypes.create_string_buffer(1 << 16)
            nvrtc.nvrtcGetProgramLog(program, log)
            sys.exit(f"{name}: {status}\n{log.value.decode()}")

    program = ctypes.c_void_p()
    text = pathlib.Path(source).read_bytes()
    call("nvrtcCreateProgram", ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    options = (ctypes.c_char_p * 2)(b"--gpu-architecture=compute_80", b"-lineinfo")
    call("nvrtcCompileProgram", program, len(options), options)
    size = ctypes.c_size_t()
    call("nvrtcGetPTXSize", program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    call("nvrtcGetPTX", program, ptx)
    pathlib.Path(output).write_bytes(ptx.value)


if __name__ == "__main__":
    main(*sys.argv[1:])
