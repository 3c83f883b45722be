"""The stages from Triton's LLVM IR on, by gpulower."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import re
import types
from typing import Any

import gpulower
from triton.runtime.errors import OutOfResources, PTXASError

#: Further options of gpulower, as `name=value` words: `GPULOWER_TRITON_OPTIONS="isolation=worker"`.
OPTIONS = "GPULOWER_TRITON_OPTIONS"

#: The most threads that a block may have, of either vendor.
MOST_THREADS = 1024

#: The newest PTX of LLVM 22, 9.0.
NEWEST_OF_LLVM = 90

#: Triton's passes have optimised its IR for the target: it is finished as it is.
OPTIMIZED = {"input_optimized": True}

#: Variables that say something of Triton's passes over LLVM IR: where one is set, Triton runs them.
OF_PASSES = ("DISABLE_LLVM_OPT", "LLVM_PASS_PLUGIN_PATH", "LLVM_IR_ENABLE_DUMP", "LLVM_EXTRACT_DI_LOCAL_VARIABLES")

#: What PTX does not have.
LLVM_ALONE = ("llvm-passes=",)

#: What is run over LLVM IR for NVIDIA in place of `default<O3>`: a module is one kernel without memory of its own, whose loops
#: Triton has arranged. What else O3 does leaves the machine code as it is (`sizes.py`).
PASSES = (
    "cgscc(inline,function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>)),globaldce,"
    "function(speculative-execution<only-if-divergent-target>,correlated-propagation,simplifycfg,"
    "instcombine<no-verify-fixpoint>,reassociate,loop-mssa(loop-rotate<header-duplication>,licm<allowspeculation>),"
    "simplifycfg,instcombine<no-verify-fixpoint>,loop(indvars,loop-deletion,loop-unroll-full),sroa<modify-cfg>,"
    "gvn,sccp,correlated-propagation,instcombine<no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),adce,"
    "simplifycfg<keep-loops;hoist-common-insts;sink-common-insts;speculate-blocks;simplify-cond-branch>,"
    "loop-unroll<O3;no-partial;no-runtime>,early-cse)"
)

#: The members of a structure that gets a name, as it is written out with each instruction that takes a value out of it: the
#: accumulators of a matrix product.
MEMBERS = re.compile(r"(\w+(?: addrspace\(\d+\))?)(?:, \1){7,}")
#: Flags of arithmetic before a structure of floats, which LLVM takes of one that is written out alone.
FLAGS = re.compile(r" (?:fast|reassoc|nnan|ninf|nsz|arcp|contract|afn) (?:i1 [^ ]+, )?$")


class WithoutPasses:
    """Triton's functions for LLVM IR, of which those do nothing that gpulower does later."""

    def __init__(self, llvm: Any) -> None:
        self._llvm = llvm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llvm, name)

    def optimize_module(self, *_: Any, **__: Any) -> None:
        """Triton's passes know no target and take twice as long."""

    def link_extern_libs(self, *_: Any, **__: Any) -> None:
        """Triton would read all of a library and verify it."""


def without_passes(make_llir: Any) -> Any:
    """Triton's step to LLVM IR with other names for the same code, so that other threads have theirs; None where it has changed."""
    function: Any = getattr(make_llir, "__func__", None)
    names = getattr(function, "__globals__", {})
    if "llvm" not in names or not {"llvm", "optimize_module"} <= set(function.__code__.co_names):
        return None
    return types.FunctionType(
        function.__code__, {**names, "llvm": WithoutPasses(names["llvm"])}, None, function.__defaults__, function.__closure__
    ).__get__(make_llir.__self__)


def install(knobs: Any) -> None:
    """Has the stages replaced in every compilation from now on."""
    before = knobs.runtime.add_stages_inspection_hook
    identity = f"gpulower {gpulower.__version__} {os.environ.get(OPTIONS, '')}"

    def hook(
        backend: Any = None,
        stages: Any = None,
        options: Any = None,
        language: Any = None,
        capability: int | None = None,
    ) -> tuple[str, str] | None:
        if backend is None:
            # Later releases of Triton ask what the hook adds to the keys of their cache.
            return identity, hashlib.sha256(identity.encode()).hexdigest()
        if before is not None:
            before(backend, stages, options, language, capability)
        replace(knobs, backend, stages, options, capability)
        return None

    knobs.runtime.add_stages_inspection_hook = hook
    # Triton's cache does not ask what a hook does: what is compiled here has a folder of its own.
    knobs.cache.dir = os.path.join(knobs.cache.dir, f"gpulower-{gpulower.__version__}")
    # A kernel is compiled in steps of megabytes, which the next one takes anew.
    gpulower.keep_freed_memory()
    # Triton would start ptxas to ask for its version.
    knobs.nvidia.mock_ptx_version = f"gpulower {gpulower.__version__}"


def replace(knobs: Any, backend: Any, stages: dict[str, Any], options: Any, capability: int | None) -> None:
    """Replaces the last stages of one compilation."""
    if capability is not None:
        finish_nvidia(knobs, backend, stages, options, capability)
    else:
        finish_amd(knobs, stages, options)


def finish_nvidia(knobs: Any, backend: Any, stages: dict[str, Any], options: Any, capability: int) -> None:
    """PTX and a cubin."""
    # Triton compiles for all of a chip's features: its IR has instructions of sm_90a and sm_100a.
    target = f"sm_{capability}{'a' if capability >= 90 else ''}"
    common: dict[str, Any] = {
        "fp_contract": "fast" if options.enable_fp_fusion else "off",
        "debug": "none" if knobs.compilation.disable_line_info else "line-tables",
        "O": 0 if knobs.nvidia.disable_ptxas_opt else 3,
        # Triton leaves `__nvvm_reflect("__CUDA_PREC_SQRT")` to LLVM, which answers 0: `tl.sqrt_rn` is the other one.
        "prec_sqrt": False,
    }
    version = options.ptx_version or newest_ptx()
    # Inline assembly is of whatever version the tool has, as with Triton's own.
    common["ptx"] = f"{version // 10}.{version % 10}"
    known = dataclasses.replace(options, ptx_version=version)
    # Chips from sm_100 on have instructions for two f32 at once, of which LLVM's passes find few where they know the target.
    is_ours = capability < 100 and "llir" in stages and not any(os.environ.get(name) for name in OF_PASSES)
    make_llir = (is_ours and without_passes(backend.make_llir)) or backend.make_llir
    passes: dict[str, Any] = dict(OPTIMIZED)
    if make_llir != backend.make_llir:
        passes = {"llvm_passes": PASSES, "libraries": tuple(path for _, path in options.extern_libs)}

    def llir(source: Any, metadata: dict[str, Any]) -> str:
        return str(make_llir(source, metadata, known, capability))

    def ptx(source: str, metadata: dict[str, Any]) -> str:
        check_threads(metadata["num_warps"] * options.warp_size)
        artifact = compiler(**common, **passes).compile(with_names(source), target, emit="ptx", name=f"{metadata['hash'][:12]}.ll")
        note(metadata, artifact)
        return artifact.bytes.decode()

    def cubin(source: str, metadata: dict[str, Any]) -> bytes:
        further: dict[str, Any] = {"ptxas_options": options.ptx_options} if options.ptx_options else {}
        try:
            artifact = compiler(LLVM_ALONE, **common, **further).compile(source, target, name=f"{metadata['hash'][:12]}.ptx")
        except gpulower.AssemblyError as error:
            # What Triton's tuner takes for a configuration that does not fit.
            raise PTXASError(str(error)) from error
        metadata["name"] = only(artifact.kernels).name
        note(metadata, artifact)
        return artifact.bytes

    if "llir" in stages:
        stages["llir"] = llir
    stages["ptx"] = ptx
    stages["cubin"] = cubin


def finish_amd(knobs: Any, stages: dict[str, Any], options: Any) -> None:
    """A code object, without assembly on the way."""
    common: dict[str, Any] = {
        "fp_contract": "fast" if options.enable_fp_fusion else "off",
        "debug": "none" if knobs.compilation.disable_line_info else "line-tables",
    }

    def hsaco(source: str, metadata: dict[str, Any]) -> bytes:
        check_threads(metadata["num_warps"] * options.warp_size)
        artifact = compiler(**common, **OPTIMIZED, wave_size=options.warp_size).compile(
            source, options.arch, name=f"{metadata['hash'][:12]}.ll"
        )
        metadata["name"] = only(artifact.kernels).name
        note(metadata, artifact)
        return artifact.bytes

    stages.pop("amdgcn", None)
    stages["hsaco"] = hsaco


def check_threads(threads: int) -> None:
    """Refuses a block that is too large, with what Triton's tuner takes for a configuration that does not fit."""
    if threads > MOST_THREADS:
        raise OutOfResources(threads, MOST_THREADS, "threads")


@functools.cache
def _compiler(words: str, options: tuple[tuple[str, Any], ...]) -> gpulower.Compiler:
    further = dict(word.split("=", 1) for word in words.split())
    return gpulower.Compiler(**{**dict(options), **{name.replace("-", "_"): value for name, value in further.items()}})


def compiler(without: tuple[str, ...] = (), /, **options: Any) -> gpulower.Compiler:
    """A compiler with these options, and those of the environment but some."""
    words = (word for word in os.environ.get(OPTIONS, "").split() if not word.startswith(without))
    return _compiler(" ".join(words), tuple(options.items()))


@functools.cache
def newest_ptx() -> int:
    """The newest PTX that LLVM writes and something here compiles, in Triton's form: 90 for 9.0."""
    tools = compiler().doctor().report["ptx_compilers"]
    return min(NEWEST_OF_LLVM, max((int(tool["newest_ptx"].replace(".", "")) for tool in tools if tool["newest_ptx"]), default=80))


def with_names(source: str) -> str:
    """The same LLVM IR with names for large structures: reading them took a fifth of the step to PTX."""
    names: dict[str, str] = {}
    pieces = source.split("{ ")
    named = pieces[:1]
    quotes = 0
    for before, piece in itertools.pairwise(pieces):
        quotes += before.count('"')
        members, _, rest = piece.partition(" }")
        # A packed one is written `<{ ... }>`.
        if not before.endswith("<") and members not in names:
            names[members] = f"%gpulower.structure.{len(names)}" if MEMBERS.fullmatch(members) else ""
        if before.endswith("<") or not names[members]:
            named.append("{ " + piece)
        elif quotes % 2 or FLAGS.search(before[-200:]):
            # A text of the program stays as it is.
            return source
        else:
            named.append(names[members] + rest)
    definitions = "".join(f"{name} = type {{ {members} }}\n" for members, name in names.items() if name)
    # Behind the lines that say what the module is for.
    return re.sub(r"^(?=[@%$]|define|declare)", lambda _: definitions, "".join(named), count=1, flags=re.MULTILINE)


def only(kernels: Any) -> Any:
    """The kernel of a module that Triton made."""
    (kernel,) = kernels
    return kernel


def note(metadata: dict[str, Any], artifact: gpulower.Artifact) -> None:
    """Puts what is known of an artifact where a program finds it: `kernel.metadata.gpulower`."""
    kernel = artifact.kernels[0] if artifact.kernels else None
    metadata.setdefault("gpulower", {})[artifact.format] = {
        "registers": kernel and kernel.registers,
        "spills": kernel and kernel.spills,
        "tool": artifact.tool,
        "seconds": dict(artifact.report["stages"]),
        "warnings": [str(warning) for warning in artifact.warnings],
    }
