"""The same launches by somebody else, whose results have to have the same bits: `cargo xtask amd -- --with hip`.

`--with "LAUNCHER... hip"` starts `checks.hip` behind the words before, such as a simulator's own launcher.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.kernel import Pointer, execute
from amdexec.traps import Trap

from .case import Array, Case, Launch


class Stopped(Exception):
    """What the other one says in the place of a result."""


class Other:
    """A process that answers lines of JSON. One that refused something is started again: after an error, HIP's calls all fail."""

    def __init__(self, words: str) -> None:
        *launcher, last = shlex.split(words)
        if last != "hip":
            raise ValueError(f"--with {words}: the last word has to be hip")
        self.command = [*launcher, sys.executable, "-m", "checks.hip"]
        self.process: subprocess.Popen[str] | None = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"trap": f"`{shlex.join(self.command)}` has ended"}
        if "trap" in answer:
            self.end()
            raise Stopped(answer["trap"])
        return answer

    def end(self) -> None:
        """At the end of its input it ends; a launch that hangs does not."""
        if self.process is not None:
            try:
                self.process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()
        self.process = None

    def target(self) -> str:
        return str(self.ask({})["target"])

    def launch(self, image: Path, target: str, kernel: str, launch: Launch) -> dict[str, Array]:
        """What is in the outputs afterwards."""
        numbers = {buffer.name: number for number, buffer in enumerate(launch.buffers)}
        answer = self.ask({
            "image": str(image),
            "target": target,
            "kernel": kernel,
            "storages": [[np.ascontiguousarray(buffer.array).tobytes().hex(), buffer.writable] for buffer in launch.buffers],
            "arguments": [numbers[word.buffer] if isinstance(word, Pointer) else word.hex() for word in launch.arguments],
            "blocks": launch.geometry.grid,
            "threads": launch.geometry.block,
            "shared": launch.geometry.dynamic_lds,
        })  # fmt: skip
        contents = zip(launch.buffers, answer["storages"], strict=True)
        return {b.name: np.frombuffer(bytes.fromhex(found), b.array.dtype).reshape(b.array.shape) for b, found in contents if b.writable}


@dataclass
class Found:
    """Same bits; right, with other bits; wrong; or stopped, and by what."""

    case: str
    verdict: str
    detail: str = ""


def compare_case(other: Other, case: Case, target: str, image: Path, seed: int, large: bool) -> Found:
    from .run import FUEL, compare

    code = codeobject.read(image, target)
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    verdict, detail = "same bits", ""
    for launch in case.launches(rng, large):
        try:
            found = other.launch(image, target, case.entry, launch)
            own = execute(code, case.entry, launch.geometry, launch.buffers, launch.arguments, seed=seed, fuel=FUEL)
        except (Stopped, Trap) as stopped:
            return Found(case.name, "stopped", f"{launch.size}: {stopped}")
        right, said = compare(found[launch.output], launch)
        if right != "ok":
            return Found(case.name, "wrong", said)
        if any(found[name].tobytes() != array.tobytes() for name, array in own.outputs.items()):
            verdict, detail = "other bits", f"{launch.size}: right, with a relative error of {said}"
    return Found(case.name, verdict, detail)


def run(options: argparse.Namespace, chosen: list[Case], folder: Path) -> int:
    """Every chosen kernel that runs on the chip of the other one; 0 if none is wrong or stopped."""
    from .run import compile_cases, image_path

    other = Other(options.against)
    try:
        spelled = other.target()
    except Stopped as stopped:
        print(f"--with {options.against}: {stopped}")
        return 1
    chip = spelled.split(":")[0]
    chosen = [case for case in chosen if chip in case.targets]
    failures = compile_cases(options.gpulower, folder, chosen, [chip])
    print(f"with {options.against}, a device of {spelled}", *failures, sep="\n", flush=True)
    counts: dict[str, int] = {}
    for case in chosen:
        if not (image := image_path(folder, case, chip)).is_file():
            continue
        found = compare_case(other, case, chip, image, options.seed, options.large)
        counts[found.verdict] = counts.get(found.verdict, 0) + 1
        print(f"{found.case:24} {found.verdict:10} {found.detail}", flush=True)
    other.end()
    print(", ".join(f"{number} {verdict}" for verdict, number in counts.items()) or f"no kernel is for {chip}")
    return 0 if counts and counts.keys() <= {"same bits", "other bits"} and not failures else 1
