#!/usr/bin/env python3
"""Writes src/offload/intrinsics.txt: the first release of LLVM that has an intrinsic of LLVM 22 in its present form.

    scripts/intrinsic_releases.py 15=/usr/include/llvm-15 16=/usr/include/llvm-16 ... 22=/usr/lib/llvm-22/include \\
        --also 20=FILE > src/offload/intrinsics.txt

The folders are those of the packages llvm-N-dev. Form means the types of arguments and results, as far as LLVM's tables
fix them, and which arguments have to be constants. FILE lists names, one on each line, that a release without a folder
was seen to accept.
"""

import json
import subprocess
import sys
import textwrap

TABLEGEN = "/usr/lib/llvm-22/bin/llvm-tblgen"
NEWEST = 22
# Those of hosts other than generic ones, and what neither our lowering nor the device libraries can produce.
TARGETS = ("", "nvvm", "amdgcn")
LEFT_OUT = tuple(
    "llvm." + name
    for name in (
        "amdgcn.image. amdgcn.interp. call.preallocated. coro. dbg. eh. experimental.deoptimize experimental.gc. "
        "experimental.guard experimental.patchpoint experimental.stackmap experimental.widenable gcread gcroot gcwrite "
        "icall. init.trampoline adjust.trampoline instrprof. lifetime. localaddress localescape localrecover "
        "nvvm.suld. nvvm.suq. nvvm.sust. nvvm.tex. nvvm.tld4. nvvm.txq. objc. ptrauth. ptr.annotation seh. sponentry "
        "stackguard stackprotector swift. type. var.annotation annotation xray."
    ).split()
)


HEAD = '''# scripts/intrinsic_releases.py wrote this: the first release of LLVM that has an intrinsic of LLVM 22 in its present form,
# without "llvm.". What is not listed is read by LLVM 22 alone, or nobody looked. From the headers of LLVM 15.0.6, 16.0.6,
# 17.0.6, 18.1.8, 19.1.7, 21.1.8 and 22.1.8; LLVM 20.1.8 (llvmlite 0.46) was given a call of each instead.'''


def read(folder):
    """Name to (form, constant arguments) of every intrinsic."""
    command = [TABLEGEN, "--dump-json", "-I", folder, f"{folder}/llvm/IR/Intrinsics.td"]
    records = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    found = {}
    for key, record in records.items():
        if key.startswith("!") or not {"ParamTypes", "RetTypes", "TargetPrefix"} <= record.keys():
            continue
        name = record.get("LLVMName") or "llvm." + record["!name"].removeprefix("int_").replace("_", ".")
        form = tuple(
            tuple(spell(records[kind["def"]]) for kind in record[part]) for part in ("RetTypes", "ParamTypes")
        )
        constants = {
            records[item["def"]].get("ArgNo")
            for item in record["IntrProperties"]
            if "ImmArg" in records[item["def"]]["!superclasses"]
        }
        found[name] = (record["TargetPrefix"], form, constants)
    return found


def spell(kind):
    """A type as a word that is the same for every release. Pointers had types of pointees up to 16."""
    classes = kind["!superclasses"]
    value = kind.get("VT")
    value = value["def"] if isinstance(value, dict) else value
    number = kind.get("Number")
    if "LLVMPointerToElt" in classes:
        return "ptr0"
    if "LLVMHalfElementsVectorType" in classes or "LLVMOneNthElementsVectorType" in classes:
        return f"part#{number}"
    if "LLVMVectorOfAnyPointersToElt" in classes:
        return f"pointers#{number}"
    if "LLVMMatchType" in classes:
        return "/".join(sorted(classes)) + f"#{number}"
    if "LLVMAnyPointerType" in classes or value in ("iPTRAny", "pAny"):
        return "any pointer"
    if value == "iPTR":
        signature = kind.get("Sig") or []
        space = kind.get("AddrSpace", signature[1] if len(signature) == 2 else 0)
        return f"ptr{space}"
    return value or kind["!name"]


def main(arguments):
    folders, also = {}, {}
    while arguments:
        target = folders
        if arguments[0] == "--also":
            arguments.pop(0)
            target = also
        release, path = arguments.pop(0).split("=", 1)
        target[int(release)] = path
    tables = {release: read(folder) for release, folder in folders.items()}
    first = {}
    for name, (target, form, constants) in tables[NEWEST].items():
        if target not in TARGETS or name.startswith(LEFT_OUT):
            continue
        first[name] = NEWEST
        for release in sorted(tables, reverse=True):
            _, old_form, old_constants = tables[release].get(name, (None, None, None))
            if old_form != form or not old_constants <= constants:
                break
            first[name] = release
    for release, path in also.items():
        with open(path, encoding="utf-8") as names:
            for name in names.read().split():
                if first.get(name, 0) == release + 1:
                    first[name] = release
    print(HEAD)
    for release in sorted(set(first.values()) - {NEWEST}):
        names = sorted(name.removeprefix("llvm.") for name, since in first.items() if since == release)
        print(f"\n[{release}]")
        print(textwrap.fill(" ".join(names), 120, break_on_hyphens=False, break_long_words=False))


if __name__ == "__main__":
    main(sys.argv[1:])
