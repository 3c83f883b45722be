#!/usr/bin/env python3
"""Do programs that `gpulower export` makes work after each release of clang has finished them?

    check_clang_releases.py --work DIR --clang N=COMMAND ... --cuda VERSION=ROOT ... [--gpulower FILE] [--only REGEX]

COMMAND runs clang N: a path, or `chroot /srv/sid clang-23`; DIR and every ROOT have to be at the same place in there.
Each program is exported in every form, finished with every clang that was given, and run with a runtime library that
writes down what is registered and launched and runs the kernels in C; the image of every chip has to have the kernels.
A row of the table is a program, a column a release: `ok`, `-` for what gpulower refuses as it should, `no` for a
difference, which is told below the table. The exit status is 1 if there is any.

Needs cc, objcopy, /bin/sh, and no GPU. docs/lab/export-releases.md has the commands for the releases and the toolkits.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import threading
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNTIMES = ("cuda", "hip")
LIBRARIES = {"cuda": "cudart", "hip": "amdhip64"}
SONAMES = {"cuda": ["libcudart.so", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"], "hip": ["libamdhip64.so"]}
CHIPS = {"cuda": ["sm_80", "sm_90"], "hip": ["gfx90a", "gfx1030"]}
LINKERS = {"ld": [], "lld gc": ["-fuse-ld=lld", "-Wl,--gc-sections"]}

# --------------------------------------------------------------------------
# Programs.

HEAD = """module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    {variables}
    gpu.func @fill(%n: index, %v: i32, %to: memref<?xi32>) kernel {{
      %i = gpu.global_id x
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {{ memref.store %v, %to[%i] : memref<?xi32> }}
      gpu.return
    }}
    {more_kernels}
  }}
"""

# Fills 1000 elements, checks them, and returns 0 if all are right.
BODY = """
  func.func @{function}() -> i32 {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 1000 : index
    %threads = arith.constant 64 : index
    %blocks = arith.ceildivui %n, %threads : index
    %v = arith.constant {value} : i32
    %host = memref.alloc(%n) : memref<?xi32>
    %device = gpu.alloc (%n) : memref<?xi32>
    gpu.launch_func @kernels::@fill blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1)
        args(%n : index, %v : i32, %device : memref<?xi32>)
    {more_launches}
    gpu.memcpy %host, %device : memref<?xi32>, memref<?xi32>
    gpu.dealloc %device : memref<?xi32>
    %good = arith.constant 0 : i32
    %bad = arith.constant 1 : i32
    %wanted = arith.constant {wanted} : i32
    %found = scf.for %i = %c0 to %n step %c1 iter_args(%so_far = %good) -> (i32) {{
      %x = memref.load %host[%i] : memref<?xi32>
      %same = arith.cmpi eq, %x, %wanted : i32
      %next = arith.select %same, %so_far, %bad : i32
      scf.yield %next : i32
    }}
    memref.dealloc %host : memref<?xi32>
    {calls}
    return %status : i32
  }}
}}
"""

VARIABLES = """memref.global @table : memref<4xi32> = dense<[10, 20, 30, 40]>
    llvm.mlir.global external constant @step(5 : i32) {addr_space = 4 : i32} : i32"""

ADD = """gpu.func @add(%n: index, %to: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %table = memref.get_global @table : memref<4xi32>
        %c0 = arith.constant 0 : index
        %t = memref.load %table[%c0] : memref<4xi32>
        %address = llvm.mlir.addressof @step : !llvm.ptr<4>
        %s = llvm.load %address : !llvm.ptr<4> -> i32
        %x = memref.load %to[%i] : memref<?xi32>
        %y = arith.addi %x, %t : i32
        %z = arith.addi %y, %s : i32
        // Functions that older releases know by other names or attributes; the result stays as it is.
        %f = arith.uitofp %t : i32 to f32
        %root = math.sqrt %f : f32
        %more = math.fma %root, %root, %f : f32
        %least = arith.minui %z, %t : i32
        %is_less = arith.cmpf olt, %more, %root : f32
        %w = arith.select %is_less, %least, %z : i32
        memref.store %w, %to[%i] : memref<?xi32>
      }
      gpu.return
    }"""

LAUNCH_ADD = """gpu.launch_func @kernels::@add blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1)
        args(%n : index, %device : memref<?xi32>)"""

CALL_OTHERS = """%second = func.call @second() : () -> i32
    %third = func.call @third() : () -> i32
    %sum = arith.addi %found, %second : i32
    %status = arith.addi %sum, %third : i32"""


def unit(function, value, second_kernel=False, others=False):
    text = HEAD.format(variables=VARIABLES if second_kernel else "", more_kernels=ADD if second_kernel else "")
    if others:
        text += "  func.func private @second() -> i32\n  func.func private @third() -> i32\n"
    return text + BODY.format(
        function=function, value=value, wanted=value + (15 if second_kernel else 0),
        more_launches=LAUNCH_ADD if second_kernel else "",
        calls=CALL_OTHERS if others else "%status = arith.addi %found, %good : i32")


FILL = "fill grid 16 1 1 block 64 1 1 shared 0"
ADDS = "add grid 16 1 1 block 64 1 1 shared 0"
PROGRAMS = {  # the files, and the launches in order
    "one kernel": ({"one": unit("main", 7)}, [FILL]),
    "two kernels, two variables": ({"two": unit("main", 9, second_kernel=True)}, [FILL, ADDS]),
    "three files": ({"first": unit("main", 3, others=True), "second": unit("second", 4),
                     "third": unit("third", 5, second_kernel=True)}, [FILL, FILL, FILL, ADDS]),
    "examples/app.mlir": ({"app": (ROOT / "examples/app.mlir").read_text()},
                          ["saxpy grid 3907 1 1 block 256 1 1 shared 0", "turn_blocks grid 3907 1 1 block 256 1 1 shared 1024"]),
}
SIZES = {"table": 16, "step": 4}
CONSTANT = {"step"}

# What the kernels of the programs do, in C. Their names in the program begin with those in the source.
KERNELS = """
#include "runtime.c"

static void fill(dim3 grid, dim3 block, size_t shared, void **arguments) {
  for (int64_t i = 0; i < INTEGER(0); ++i) ((int32_t *)POINTER(3))[i] = *(int32_t *)arguments[1];
}
static void add(dim3 grid, dim3 block, size_t shared, void **arguments) {
  for (int64_t i = 0; i < INTEGER(0); ++i) ((int32_t *)POINTER(2))[i] += 15;
}
static void saxpy(dim3 grid, dim3 block, size_t shared, void **arguments) {
  float a = *(float *)arguments[1], *x = (float *)POINTER(3), *y = (float *)POINTER(8);
  for (int64_t i = 0; i < INTEGER(0); ++i) y[i] = a * x[i] + y[i];
}
static void turn_blocks(dim3 grid, dim3 block, size_t shared, void **arguments) {
  int64_t n = INTEGER(0);
  float *from = (float *)POINTER(2), *to = (float *)POINTER(7);
  for (int64_t i = 0; i < n; ++i) {
    int64_t start = i - i % block.x, count = n - start < block.x ? n - start : block.x;
    to[i] = from[start + count - 1 - (i - start)];
  }
}
void log_function(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
void REGISTER(void **binary, const void *address, char *device, const char *name, int limit, void *a, void *b, void *c,
              void *d, int *e) {
  static const struct { const char *name; kernel_t kernel; } known[] = {
      {"fill", fill}, {"add", add}, {"saxpy", saxpy}, {"turn_blocks", turn_blocks}};
  log_function(binary, address, device, name, limit, a, b, c, d, e);
  for (int i = 0; i < 4; ++i)
    if (!strncmp(name, known[i].name, strlen(known[i].name)))
      return test_register(address, name, known[i].kernel);
  SAY("unknown kernel %s\\n", name);
}
"""


class Failure(Exception):
    """What was different from what it should be."""


def run(command, folder, environment=None, check=True):
    """Standard output and standard error of a command in a folder."""
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise Failure(f"{command[0]} cannot be run: {error}") from None
    if check and done.returncode:
        text = (done.stderr + done.stdout).strip() or "no message"
        raise Failure(f"{shlex.join(map(str, command))}: exit status {done.returncode}: {text}")
    return done


def release(text):
    return tuple(int(part) for part in text.split("."))


# --------------------------------------------------------------------------
# Tools.


class Bench:
    """The tools, the runtime libraries, and the exported files so far."""

    def __init__(self, arguments):
        self.work = pathlib.Path(arguments.work).resolve()
        self.gpulower = str(pathlib.Path(arguments.gpulower).resolve())
        self.clangs = {int(number): shlex.split(command) for number, command in arguments.clang}
        self.cudas = dict(sorted(arguments.cuda, key=lambda pair: release(pair[0])))
        self.newest_cuda = list(self.cudas)[-1]
        self.exports = {}
        self.lock = threading.RLock()
        self.has_check = "--check" in run([self.gpulower, "export", "--help"], ROOT).stdout
        for number in sorted(self.clangs):
            version = run([*self.clangs[number], "--version"], ROOT).stdout
            if not re.search(rf"clang version {number}\.", version):
                raise Failure(f"--clang {number} is another release: {version.splitlines()[0]}")
        for runtime in RUNTIMES:
            self.build_runtime(runtime)

    def build_runtime(self, runtime):
        """Both stand-ins of the tests in one library: one for what is registered, the other for all calls."""
        folder = self.work / runtime
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernels.c").write_text(KERNELS)
        source = ROOT / "tests/offload"
        register, launch = f"__{runtime}RegisterFunction", f"{runtime}LaunchKernel"
        flags = ["-c", "-O1", "-fPIC", "-w", f"-DPREFIX={runtime}", f"-I{source}"]
        run(["cc", *flags, f"-D{register}=log_function", f"-D{launch}=log_launch", source / "registration.c", "-o", "a.o"],
            folder)
        run(["cc", *flags, f"-DREGISTER={register}", "kernels.c", "-o", "b.o"], folder)
        for name in SONAMES[runtime]:
            run(["cc", "-shared", "a.o", "b.o", "-o", name], folder)

    def environment(self, cuda=None, path=""):
        """Variables for a clang that finishes with a CUDA toolkit."""
        variables = dict(os.environ, LD_LIBRARY_PATH=f"{self.work}/cuda:{self.work}/hip")
        if cuda:
            root = self.cudas[cuda]
            variables.update(CUDA_ROOT=root, PATH=f"{path}{root}/bin:{os.environ['PATH']}")
        return variables

    def script(self, cuda, clang):
        """The folder with the script that gpulower prints for old clang with new CUDA, for PATH; empty if none is needed."""
        if clang >= 22 or release(cuda) < (12, 9):
            return ""
        folder = self.work / "script"
        with self.lock:
            if (folder / "fatbinary").exists():
                return f"{folder}:"
            text = self.export("one kernel", "cuda", "obj", 1, [21], cuda)[0]["commands"]
            body = re.search(r"<<'END'\n(.*?)^END$", text, re.S | re.M).group(1)
            folder.mkdir(exist_ok=True)
            (folder / "fatbinary").write_text(body)
            (folder / "fatbinary").chmod(0o755)
        return f"{folder}:"

    def export(self, program, runtime, form, archs, clangs, cuda, ptxas=None):
        """The files of a program: for each its path, the names of its kernels and variables, and the printed commands."""
        key = (program, runtime, form, archs, tuple(clangs), cuda, tuple(ptxas or ()))
        with self.lock:
            if key in self.exports:
                return self.exports[key]
            self.exports[key] = [self.export_file(key, name, text) for name, text in PROGRAMS[program][0].items()]
        return self.exports[key]

    def export_file(self, key, name, text):
        _, runtime, form, archs, clangs, cuda, ptxas = key
        folder = self.work / "exports" / re.sub(r"\W+", "-", "-".join(map(str, key)))
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{name}.mlir"
        source.write_text(text)
        file = folder / f"{name}.{'o' if form in ('obj', 'self') else form}"
        command = [self.gpulower, "export", source, "--target", ",".join(CHIPS[runtime][:archs]), "--emit", form, "-o", file,
                   "-v", "--cuda", self.cudas[self.newest_cuda]]
        if form != "self":
            there = f"cuda-{cuda}" if runtime == "cuda" else "rocm"
            command += ["--finish-with", ",".join([*(f"clang-{number}" for number in clangs), there])]
        for version in ptxas:
            command += ["--ptxas-of", self.cudas[version]]
        done = run(command, folder)
        names = re.findall(r"^(kernel|variable) (\S+) is called (\S+)$", done.stderr, re.M)
        return {"file": file, "names": names, "commands": done.stdout}

    def finish(self, clang, inputs, runtime, form, options, cuda, output):
        """Links with a clang, and runs: the log."""
        path = self.script(cuda, clang) if runtime == "cuda" else ""
        environment = self.environment(cuda if runtime == "cuda" else None, path)
        output.unlink(missing_ok=True)
        own = [] if form == "self" else ["--offload-link"]
        own += ["-O2"] if form in ("ll", "bc") else []
        libraries = [f"-L{self.work / runtime}", f"-l{LIBRARIES[runtime]}", "-lm"]
        run([*self.clangs[clang], *map(str, inputs), *own, *options, *libraries, "-o", str(output)], self.work, environment)
        return self.run_program(clang, output, environment)

    def run_program(self, clang, output, environment):
        # In the same root as the clang, whose C library it needs.
        done = run([*self.clangs[clang][:-1], str(output)], self.work, environment, check=False)
        # What was linked with NVIDIA's library says that the stand-in does not number its symbols.
        errors = [line for line in done.stderr.splitlines() if "no version information available" not in line]
        if done.returncode or errors:
            raise Failure("\n".join([f"the program ends with status {done.returncode}:", *errors, done.stdout.strip()]))
        return done.stdout.splitlines()


# --------------------------------------------------------------------------
# What is expected.


def compare_log(log, files, program, runtime, form, has_constants):
    """The registrations, each once, and the launches in order."""
    expected = Counter()
    for file in files:
        for kind, source, name in file["names"]:
            if kind == "kernel":
                expected[f"function {name} {name} limit -1"] += 1
            else:
                constant = int(source in CONSTANT and has_constants)
                expected[f"variable {name} external 0 size {SIZES[source]} constant {constant}"] += 1
    binaries = len(files) if form == "self" else 1
    magic, data = ("466243b1", "ba55ed50") if runtime == "cuda" else ("48495046", "4c435f5f")
    expected[f"fatbinary magic {magic} version 1 data {data}"] += binaries
    if runtime == "cuda":
        expected["end"] += binaries
    expected["unregister"] += binaries

    kinds = ("function", "variable", "fatbinary", "end", "unregister")
    seen = [re.sub(r"( in)? \d+$| aligned \d+$", "", line) if line.split()[0] != "variable" else line
            for line in log if line.split()[0] in kinds]
    found = Counter(seen)
    if found != expected:
        raise Failure(f"registered: missing {dict(expected - found)}, unexpected {dict(found - expected)}")
    launches = [re.sub(r"^launch (\w+?)(__\w+)? (.*) stream \d+$", r"\1 \3", line) for line in log if line.startswith("launch")]
    if launches != PROGRAMS[program][1]:
        raise Failure(f"launched: {launches} instead of {PROGRAMS[program][1]}")


def compare_images(bench, output, files, runtime, archs):
    """The code of every kernel for every chip."""
    kernels = [name for file in files for kind, _, name in file["names"] if kind == "kernel"]
    for chip in CHIPS[runtime][:archs]:
        if runtime == "cuda":
            dump = [f"{bench.cudas[bench.newest_cuda]}/bin/cuobjdump", "-elf", "-arch", chip, output]
            code = run(dump, bench.work).stdout
            missing = [name for name in kernels if f".text.{name}" not in code]
        else:
            code = code_of(bundles(bench, output), chip)
            missing = [name for name in kernels if f"{name}.kd\0".encode() not in code]
        if missing:
            raise Failure(f"the image for {chip} does not have {', '.join(missing)}")


def bundles(bench, output):
    section = output.with_suffix(".bundles")
    run(["objcopy", "-O", "binary", "-j", ".hip_fatbin", output, section], bench.work)
    return section.read_bytes()


def code_of(data, chip):
    """The code objects for a chip in all bundles."""
    code = b""
    for match in re.finditer(b"__CLANG_OFFLOAD_BUNDLE__", data):
        start = match.start()
        (count,) = struct.unpack_from("<Q", data, start + 24)
        place = start + 32
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", data, place)
            identifier = data[place + 24:place + 24 + length].decode()
            place += 24 + length
            if identifier.endswith(f"-{chip}"):
                code += data[start + offset:start + offset + size]
    return code


def compare_check(bench, file, clang, serves):
    """What `gpulower export --check` says of an exported file, in its exit status."""
    done = run([bench.gpulower, "export", "--check", file, "--with", f"clang-{clang}"], bench.work, check=False)
    if (done.returncode == 0) != serves:
        says = (done.stdout + done.stderr).strip()
        raise Failure(f"export --check says the contrary (status {done.returncode}): {says}")


# --------------------------------------------------------------------------
# Rows.


class Row:
    """A program in a form, and the way to it for each clang; `cells` is filled in."""

    def __init__(self, title, cell):
        self.title, self.cell, self.cells = title, cell, {}


def shared_with(clang, clangs, runtime):
    """The releases with which a clang can share one object, of those that there are."""
    if runtime == "hip":
        return [other for other in clangs if (other <= 19, other <= 20) == (clang <= 19, clang <= 20)]
    return [other for other in clangs if (other >= 20 if clang == 20 else other != 20)]


def alone(clang):
    return [clang]


def cell(bench, program, runtime, form, archs, linker, cuda=None, ptxas=None, releases_with=None):
    """Exports for the releases that `releases_with` gives, finishes with a clang, runs and compares."""
    title = f"{program}, {runtime}, {form}, {archs}, {linker}, {cuda}, {ptxas}, {releases_with and releases_with(15)}"

    def go(clang):
        over_there = cuda or bench.newest_cuda
        if releases_with:
            releases = releases_with(clang)
        else:
            releases = shared_with(clang, sorted(bench.clangs), runtime) if form == "obj" else [clang]
        files = bench.export(program, runtime, form, archs, releases, over_there, ptxas)
        output = bench.work / "programs" / f"{re.sub(chr(92) + 'W+', '-', title)}-{clang}"
        log = bench.finish(clang, [file["file"] for file in files], runtime, form, LINKERS[linker], over_there, output)
        # Up to clang 17 entries have no flag for constants, and 18 and 19 read theirs.
        has_constants = form == "self" or clang >= 20 or (clang >= 18 and min(releases) >= 18)
        compare_log(log, files, program, runtime, form, has_constants)
        compare_images(bench, output, files, runtime, archs)
        if form == "obj" and bench.has_check:
            for file in files:
                compare_check(bench, file["file"], clang, True)
        return "ok"

    return go


def or_refused(go, refuses, message):
    """The same, where some releases have to be refused with a message."""

    def attempt(clang):
        try:
            result = go(clang)
        except Failure as failure:
            if refuses(clang) and message in str(failure):
                return "-"
            raise
        if refuses(clang):
            raise Failure(f"is not refused with {message!r}")
        return result

    return attempt


def as_printed(bench, form, runtime):
    """The commands that `gpulower export` prints, run by a shell."""

    def go(clang):
        (file,) = bench.export("two kernels, two variables", runtime, form, 2, [clang], bench.newest_cuda)
        folder = bench.work / "printed" / f"{form}-{runtime}-{clang}"
        tools = folder / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        tool = tools / ("cc" if form == "self" else f"clang-{clang}")
        # Clang reads and writes in the current folder, which a chroot command does not keep.
        # This script stands first in PATH under the name of the clang that it calls.
        inner = f'cd {shlex.quote(str(folder))} && PATH=$(echo "$PATH" | sed "s|{tools}:||") && exec "$0" "$@"'
        prefix, clang_itself = bench.clangs[clang][:-1], bench.clangs[clang][-1]
        tool.write_text(f"#!/bin/sh\nexec {shlex.join([*prefix, '/bin/sh', '-c', inner, clang_itself])} \"$@\"\n")
        tool.chmod(0o755)
        (folder / file["file"].name).write_bytes(file["file"].read_bytes())
        environment = bench.environment()
        environment.update(PATH=f"{tools}:{os.environ['PATH']}", CUDA_ROOT=bench.cudas[bench.newest_cuda], ROCM_PATH=str(folder))
        library = folder / "lib"
        if not library.exists():
            library.symlink_to(bench.work / "hip")
        run(["/bin/sh", "-e", "-c", file["commands"]], folder, environment)
        output = folder / file["file"].stem
        log = bench.run_program(clang, output, environment)
        compare_log(log, [file], "two kernels, two variables", runtime, form, form == "self" or clang >= 18)
        compare_images(bench, output, [file], runtime, 2)
        return "ok"

    return go


def other_release(bench, runtime, clang_of_file):
    """An object for another release is not right after the link, and `export --check` says so: these checks can fail."""
    two = "two kernels, two variables"

    def go(clang):
        (file,) = bench.export(two, runtime, "obj", 1, [clang_of_file], bench.newest_cuda)
        serves = f"clang {clang}" in served(file["commands"])
        if bench.has_check:
            compare_check(bench, file["file"], clang, serves)
        if serves:
            return "ok"
        output = bench.work / "programs" / f"other-{runtime}-{clang_of_file}-{clang}"
        # Nothing is registered, or not all, or the constructor ends with a segmentation fault; clang 21 and newer take
        # HIP's number of old for that of CUDA.
        try:
            log = bench.finish(clang, [file["file"]], runtime, "obj", [], bench.newest_cuda, output)
            compare_log(log, [file], two, runtime, "obj", clang >= 18)
        except Failure as failure:
            if re.search("cannot launch|status -11|registered: missing|Unable to find 'fatbinary'", str(failure)):
                return "-"
            raise
        raise Failure("an object that was made for another release works")

    return go


def served(commands):
    """The releases in `# Finished by clang 15 to 17 and 23, with:`, each as `clang N`."""
    text = re.search(r"^# Finished by clang (.*), with:$", commands, re.M).group(1)
    numbers = []
    for part in re.split(r", | and ", text):
        first, _, last = part.partition(" to ")
        numbers += range(int(first), int(last or first) + 1)
    return {f"clang {number}" for number in numbers}


def rows(bench):
    """Every row of the table."""
    forms = ("obj", "ll", "bc", "self")
    for program, runtime, form, archs, linker in itertools.product(PROGRAMS, RUNTIMES, forms, (1, 2), LINKERS):
        title = f"{program}: {runtime} {form}, {archs} chip{'s'[:archs - 1]}, {linker}"
        yield Row(title, cell(bench, program, runtime, form, archs, linker))
    two = "two kernels, two variables"
    for form, runtime in itertools.product(("obj", "ll", "self"), RUNTIMES):
        yield Row(f"as printed: {runtime} {form}", as_printed(bench, form, runtime))
    for cuda in bench.cudas:
        for form in ("obj", "bc"):
            title = f"cubins of CUDA {cuda}: {form}"
            yield Row(title, cell(bench, two, "cuda", form, 2, "lld gc", cuda, list(bench.cudas), alone))
    # Without a ptxas that is old enough. Clang 22 takes no PTX, so that what it shares with another is bitcode.
    for cuda in list(bench.cudas)[:-1]:
        yield Row(f"PTX for CUDA {cuda}: obj", or_refused(
            cell(bench, two, "cuda", "obj", 2, "ld", cuda, releases_with=alone), lambda clang: clang == 15 or clang >= 20,
            "PTX: not with clang"))
        for form, program in itertools.product(("ll", "bc"), (two, "examples/app.mlir")):
            go = cell(bench, program, "cuda", form, 1, "ld", cuda, releases_with=lambda clang: sorted({clang, 22}))
            yield Row(f"bitcode for CUDA {cuda}: {form}, {program}", go)
        yield Row(f"bitcode for CUDA {cuda} and sm_90: bc", or_refused(
            cell(bench, two, "cuda", "bc", 2, "ld", cuda, releases_with=lambda clang: sorted({clang, 22})),
            lambda clang: clang == 15, "clang 15 cannot compile it for sm_90"))
    for runtime, clang in itertools.product(RUNTIMES, (15, 18, 20, 22)):
        yield Row(f"{runtime} object for clang {clang} with others", other_release(bench, runtime, clang))


REFUSALS = [
    ("cuda", "obj", [19, 20], "no object serves clang 19 and clang 20 at once"),
    ("hip", "obj", [19, 20], "no object serves clang 19 and clang 20 at once"),
    ("hip", "obj", [20, 21], "no object for HIP serves clang 20 and clang 21 at once"),
    ("hip", "ll", [15, 22], "no object for HIP serves clang 15 and clang 22 at once"),
]


def refusals(bench):
    """What no file can serve is refused."""
    for runtime, form, clangs, message in REFUSALS:
        try:
            bench.export("one kernel", runtime, form, 1, clangs, bench.newest_cuda)
        except Failure as failure:
            if message not in str(failure):
                yield f"refusal of {runtime} {form} for clang {clangs}: no {message!r} in {failure}"
        else:
            yield f"{runtime} {form} for clang {clangs} is not refused"


# --------------------------------------------------------------------------


def fill_in(rows, clangs, jobs):
    """Runs every cell, and gives back what went wrong."""
    problems = []

    def work(row, clang):
        try:
            return row, clang, row.cell(clang), None
        except Failure as failure:
            return row, clang, "no", str(failure)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, row, clang) for row in rows for clang in clangs]
        for future in futures:
            row, clang, row.cells[clang], problem = future.result()
            if problem:
                problems.append((row.title, clang, problem))
    return problems


def print_table(rows, clangs):
    width = max(len(row.title) for row in rows)
    print("".ljust(width), *(f"{clang:>6}" for clang in clangs))
    for row in rows:
        print(row.title.ljust(width), *(f"{row.cells[clang]:>6}" for clang in clangs))


def grouped(problems):
    """Problems of a row that differ in numbers and in the command alone are told once."""
    groups = {}
    for title, clang, problem in problems:
        essence = re.sub(r"\d+", "", problem.partition(": exit status")[2] or problem)
        groups.setdefault((title, essence), ([], problem))[0].append(str(clang))
    return groups


def pair(text):
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.removeprefix("clang-").removeprefix("cuda-"), value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="a folder for everything that is made")
    parser.add_argument("--clang", type=pair, action="append", required=True, metavar="N=COMMAND")
    parser.add_argument("--cuda", type=pair, action="append", required=True, metavar="VERSION=ROOT")
    parser.add_argument("--gpulower", default=ROOT / "target/debug/gpulower")
    parser.add_argument("--only", default="", help="rows whose title has this regular expression in it")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    arguments = parser.parse_args()
    try:
        bench = Bench(arguments)
    except Failure as failure:
        sys.exit(f"check_clang_releases.py: {failure}")
    (bench.work / "programs").mkdir(exist_ok=True)
    clangs = sorted(bench.clangs)
    chosen = [row for row in rows(bench) if re.search(arguments.only, row.title)]
    if not chosen:
        sys.exit(f"check_clang_releases.py: no row has {arguments.only!r} in its title")
    problems = fill_in(chosen, clangs, arguments.jobs)
    print_table(chosen, clangs)
    for (title, _), (numbers, problem) in grouped(problems).items():
        print(f"\n{title}, clang {', '.join(numbers)}: {problem}")
    others = list(refusals(bench))
    if not bench.has_check:
        others.append("this gpulower has no `export --check`: what it says of the files was not compared")
    for problem in others:
        print(f"\n{problem}")
    count = sum(result == "ok" for row in chosen for result in row.cells.values())
    print(f"\n{count} finished programs are right; {len(problems) + len(others)} differences.")
    sys.exit(1 if problems or others else 0)


if __name__ == "__main__":
    main()
