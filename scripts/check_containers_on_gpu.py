#!/usr/bin/env python3
"""Which image of a fat binary does the driver load, and is it the one that `gpulower inspect --device` names?

    python3 scripts/check_containers_on_gpu.py make DIR     # needs gpulower and ptxas, no GPU
    python3 scripts/check_containers_on_gpu.py run DIR      # needs a driver and a GPU, nothing else

`make` writes fat binaries with `gpulower pack`, each image of which stores a number of its own, in three ways to
compress, and what `gpulower inspect` expects of each. `run` loads them with the driver, launches the kernel, and compares.
"""

import ctypes
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CUDA = os.environ.get("CUDA_HOME", os.path.join(ROOT, ".toolkit", "cuda"))
GPULOWER = os.environ.get("GPULOWER", os.path.join(ROOT, "target", "debug", "gpulower"))

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
]
BARE = ["E90", "E80", "E90a", "P80", "P90@9.9", "P100", "P90a"]


class Maker:
    def __init__(self, folder):
        self.folder = folder
        self.numbers = {}

    def image(self, name):
        """The file of an image; its kernel stores a number that no other image stores."""
        kind, rest = name[0], name[1:]
        arch, _, isa = rest.partition("@")
        number = self.numbers.setdefault(name, 1000 + len(self.numbers))
        extension = "cubin" if kind == "E" else "ptx"
        path = os.path.join(self.folder, f"{name}.{extension}")
        if not os.path.exists(path):
            text = PTX.format(isa=isa or ISA[arch], arch=arch, number=number)
            source = path if kind == "P" else path + ".ptx"
            with open(source, "w") as file:
                file.write(text)
            if kind == "E":
                run([os.path.join(CUDA, "bin", "ptxas"), f"-arch=sm_{arch}", source, "-o", path])
        return path

    def expected(self, path, names):
        """What `gpulower inspect` says that a device of compute capability 9.0 with a driver of CUDA 13.0 does."""
        text = subprocess.run(
            [GPULOWER, "inspect", path, "--device", "sm_90", "--driver", "13.0", "--json"], capture_output=True, text=True
        ).stdout
        (module,) = json.loads(text)["devices"][0]["modules"]
        if module["outcome"] == "fails":
            return f"{module['code']} {module['name']}"
        return str(self.numbers[names[module["image"] - 1]])

    def make(self):
        cases = []
        for case in CASES:
            names = case.split()
            files = [f"sm_{name[1:].partition('@')[0]}={self.image(name)}" for name in names]
            for way in ["none", "lz4", "zstd"]:
                path = os.path.join(self.folder, f"{len(cases)}.fatbin")
                run([GPULOWER, "pack", *files, "--emit", "fatbin", f"--compress={way}", "-o", path])
                cases.append({"case": case, "way": way, "file": os.path.basename(path), "expected": self.expected(path, names)})
        for name in BARE:
            path = self.image(name)
            cases.append({"case": name, "way": "bare", "file": os.path.basename(path), "expected": self.expected(path, [name])})
        with open(os.path.join(self.folder, "cases.json"), "w") as file:
            json.dump(cases, file)
        print(f"{len(cases)} files in {self.folder}")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")


class Driver:
    def __init__(self):
        # What was compiled before must not answer for the compiler.
        os.environ["CUDA_CACHE_DISABLE"] = "1"
        self.cuda = ctypes.CDLL("libcuda.so.1")
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

    def name(self, code):
        text = ctypes.c_char_p()
        self.cuda.cuGetErrorName(code, ctypes.byref(text))
        return f"{code} {text.value.decode()}"

    def check(self, code):
        if code:
            sys.exit(self.name(code))

    def load(self, image):
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


def check(folder):
    driver = Driver()
    with open(os.path.join(folder, "cases.json")) as file:
        cases = json.load(file)
    wrong = 0
    for case in cases:
        with open(os.path.join(folder, case["file"]), "rb") as file:
            found = driver.load(file.read())
        agrees = found == case["expected"]
        wrong += not agrees
        print(f"{case['case']:22} {case['way']:5} {found:38} {'' if agrees else 'expected ' + case['expected']}")
    print(f"{len(cases) - wrong} of {len(cases)} as expected")
    return 1 if wrong else 0


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("make", "run"):
        sys.exit(__doc__)
    if sys.argv[1] == "run":
        sys.exit(check(sys.argv[2]))
    os.makedirs(sys.argv[2], exist_ok=True)
    Maker(sys.argv[2]).make()


main()
