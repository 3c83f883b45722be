#!/usr/bin/env python3
"""Which image of a fat binary does the driver load, and is it the one that `gpulower inspect --device` names?

    containers.py make FOLDER     # needs gpulower and ptxas, no GPU
    containers.py run FOLDER      # needs a driver and a GPU, nothing else

`make` writes fat binaries with `gpulower pack`, each image of which stores a number of its own, in three ways to
compress, and what `gpulower inspect` expects of each. `run` loads them with the driver, launches the kernel, and compares.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import harness

# First PTX ISA of each chip.
ISA = {"75": "6.3", "80": "7.0", "86": "7.1", "87": "7.4", "89": "7.8", "90": "7.8", "90a": "8.0", "100": "8.6", "100f": "8.8"}

PTX = """.version {isa}
.target sm_{arch}
.address_size 64
.visible .entry which(.param .u64 result)
{{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [result];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, {number};
  st.global.u32 [%rd2], %r1;
  ret;
}}
"""

# E80 is a cubin for sm_80, P90a PTX for sm_90a, P90@9.9 PTX with an ISA that no driver reads.
CASES = [
    "E90", "E90a", "E90 E90a", "E90a E90", "E80 P80", "P80 P90", "P90 P80", "P80 P90 P90a", "P90a P90 P80", "P75 P90a",
    "P90a", "P75 P80 P86 P87 P89", "P89 P87 P86 P80 P75", "P90 E90", "P90a E90", "P100 P80", "P100", "P100f P90",
    "E100 P80", "P90@9.9 P80", "P80 P90@9.9", "P90@9.9", "P90@9.9 E90", "E80 E86 E89 E100", "E75", "E87", "E89", "E89 P75",
]  # fmt: skip
BARE = ["E90", "E80", "E90a", "P80", "P90@9.9", "P100", "P90a"]


class Maker:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers: dict[str, int] = {}

    def image(self, name: str) -> Path:
        """The file of an image; its kernel stores a number that no other image stores."""
        kind, rest = name[0], name[1:]
        arch, _, isa = rest.partition("@")
        number = self.numbers.setdefault(name, 1000 + len(self.numbers))
        extension = "cubin" if kind == "E" else "ptx"
        path = self.folder / f"{name}.{extension}"
        if not path.exists():
            text = PTX.format(isa=isa or ISA[arch], arch=arch, number=number)
            source = path.with_suffix(".ptx" if kind == "P" else ".source")
            source.write_text(text)
            if kind == "E":
                harness.made([harness.CUDA / "bin/ptxas", f"-arch=sm_{arch}", source, "-o", path])
                source.unlink()
        return path

    def expected(self, path: Path, names: list[str]) -> str:
        """What `gpulower inspect` says that a device of compute capability 9.0 with a driver of CUDA 13.0 does."""
        # It fails where the device would.
        inspect: list[harness.Word] = [harness.GPULOWER, "inspect", path, "--device", "sm_90", "--driver", "13.0", "--json"]
        (module,) = json.loads(subprocess.run(inspect, capture_output=True).stdout)["devices"][0]["modules"]
        if module["outcome"] == "fails":
            return f"{module['code']} {module['name']}"
        return str(self.numbers[names[module["image"] - 1]])

    def make(self) -> None:
        cases: list[dict[str, str]] = []
        for case in CASES:
            names = case.split()
            files = [f"sm_{name[1:].partition('@')[0]}={self.image(name)}" for name in names]
            for way in ["none", "lz4", "zstd"]:
                path = self.folder / f"{len(cases)}.fatbin"
                harness.made([harness.GPULOWER, "pack", *files, "--emit", "fatbin", f"--compress={way}", "-o", path])
                cases.append({"case": case, "way": way, "file": path.name, "expected": self.expected(path, names)})
        for name in BARE:
            path = self.image(name)
            cases.append({"case": name, "way": "bare", "file": path.name, "expected": self.expected(path, [name])})
        (self.folder / "cases.json").write_text(json.dumps(cases))


class Driver:
    def __init__(self) -> None:
        # What was compiled before must not answer for the compiler.
        os.environ["CUDA_CACHE_DISABLE"] = "1"
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"there is no NVIDIA driver: {error}")
        device, context, version, self.result = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDeviceGet(ctypes.byref(device), 0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.check(self.cuda.cuCtxSetCurrent(context))
        self.check(self.cuda.cuDriverGetVersion(ctypes.byref(version)))
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(self.result), 4))
        name = ctypes.create_string_buffer(100)
        self.check(self.cuda.cuDeviceGetName(name, 100, device))
        print(f"{name.value.decode()}, driver of CUDA {version.value // 1000}.{version.value % 1000 // 10}")

    def name(self, code: int) -> str:
        text = ctypes.c_char_p()
        self.cuda.cuGetErrorName(code, ctypes.byref(text))
        return f"{code} {(text.value or b'').decode()}"

    def check(self, code: int) -> None:
        if code:
            sys.exit(self.name(code))

    def load(self, image: bytes) -> str:
        """The number that the chosen image stores, or the error of the load."""
        module, function, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32()
        code = self.cuda.cuModuleLoadData(ctypes.byref(module), image + b"\0")
        if code:
            return self.name(code)
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"which"))
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(self.result), ctypes.c_void_p))
        self.check(self.cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
        self.check(self.cuda.cuCtxSynchronize())
        self.check(self.cuda.cuMemcpyDtoH_v2(ctypes.byref(value), self.result, 4))
        self.check(self.cuda.cuModuleUnload(module))
        return str(value.value)


def run(chosen: argparse.Namespace) -> int:
    driver, checks = Driver(), harness.Checks("files")
    for case in json.loads((chosen.folder / "cases.json").read_text()):
        found, expected = driver.load((chosen.folder / case["file"]).read_bytes()), case["expected"]
        detail = found if found == expected else f"{found}, expected {expected}"
        checks.check(f"{case['case']:22} {case['way']}", found == expected, detail)
    return checks.status()


harness.command_line(__doc__, run, lambda chosen: Maker(chosen.folder).make())
