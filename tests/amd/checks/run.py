"""Compiles the kernels, executes them on each chip, and compares. Runs in as many processes as there are processors, two by default."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from amdexec import codeobject
from amdexec.kernel import execute
from amdexec.traps import Trap

from . import elsewhere
from .case import CHIPS, Array, Case, Launch, relative_error
from .examples import CASES as EXAMPLES
from .examples import ROOT
from .kernels import CASES as KERNELS
from .lowering import CASES as LOWERING
from .matrices import CASES as MATRICES
from .small_floats import CASES as SMALL_FLOATS

FUEL = 20_000_000


@dataclass(frozen=True)
class Outcome:
    """What came of one kernel on one chip."""

    name: str
    target: str
    verdict: str
    detail: str
    instructions: int
    seconds: float

    @property
    def right(self) -> bool:
        return self.verdict in ("ok", "known")


def cases() -> tuple[Case, ...]:
    return EXAMPLES + KERNELS + LOWERING + MATRICES + SMALL_FLOATS


# -- compiling


def image_path(folder: Path, case: Case, target: str) -> Path:
    return folder / case.name / f"{target}.hsaco"


def compile_cases(gpulower: Path, folder: Path, chosen: list[Case], targets: list[str]) -> list[str]:
    """Compiles each source once for each set of options, for all chips at once; returns what went wrong."""
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in chosen:
        groups.setdefault((case.source, case.options, case.spelled), []).append(case)
    problems = []
    for number, members in enumerate(groups.values()):
        wanted = [target for target in targets if any(target in case.targets for case in members)]
        if not wanted:
            continue
        out = folder / str(number)
        out.mkdir(parents=True, exist_ok=True)
        first = members[0]
        spelled = ",".join(first.target(target) for target in wanted)
        command = [str(gpulower), "compile", first.source, "--target", spelled, *first.options, "-o", f"{out}/"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            problems.append(f"`{' '.join(command)}` failed\n{done.stderr.strip()}")
            continue
        for case in members:
            _place(out, folder / case.name, case, wanted)
    return problems


def file_name(target: str) -> str:
    """The end of the name that gpulower gives a code object."""
    return f".{target.replace(':', '@')}.hsaco"


def _place(made: Path, folder: Path, case: Case, targets: list[str]) -> None:
    """Gives what was compiled the names of the case: an image for each chip, or a bundle of all."""
    folder.mkdir(exist_ok=True)
    for target in targets:
        name = file_name(case.target(target))
        found = [path for path in made.iterdir() if path.name.endswith(name)] or list(made.iterdir())
        if target in case.targets and len(found) == 1:
            (folder / f"{target}.hsaco").symlink_to(found[0])


# -- running


def check_launch(code: codeobject.CodeObject, kernel: str, launch: Launch, seed: int) -> tuple[str, str, int]:
    """(verdict, detail, instructions) of one launch."""
    try:
        result = execute(code, kernel, launch.geometry, launch.buffers, launch.arguments, seed=seed, fuel=FUEL)
    except Trap as trap:
        return "trap", f"{launch.size}: {trap}", 0
    output = result.outputs[launch.output]
    return (*compare(output, launch), result.instructions)


def compare(output: Array, launch: Launch) -> tuple[str, str]:
    """ok and the relative error, or wrong and where."""
    output = launch.compared(output) if launch.compared else output
    error = relative_error(output, launch.expected)
    if error <= launch.tolerance:
        return "ok", f"{error:.1e}"
    return "wrong", f"{launch.size}: relative error {error:.2e}, allowed {launch.tolerance:.0e}{_first(output, launch)}"


def _first(output: Array, launch: Launch) -> str:
    actual, expected = np.asarray(output).reshape(-1), np.asarray(launch.expected).reshape(-1)
    different = np.flatnonzero(~np.isclose(actual, expected, rtol=max(launch.tolerance, 1e-12), atol=0, equal_nan=True))
    if not len(different):
        return ""
    at = int(different[0])
    return f"; element {at} is {actual[at]}, not {expected[at]}"


def run_case(name: str, target: str, image: str, seed: int, large: bool) -> Outcome:
    """All launches of a kernel on one chip, in a process of its own."""
    case = next(case for case in cases() if case.name == name)
    start = time.monotonic()
    code = codeobject.read(Path(image), target)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    verdict, detail, instructions = "ok", "", 0
    worst = 0.0
    for launch in case.launches(rng, large):
        verdict, detail, count = check_launch(code, case.entry, launch, seed)
        instructions += count
        if verdict != "ok":
            break
        worst = max(worst, float(detail))
    detail = f"{worst:.1e}" if verdict == "ok" else detail
    if case.known_wrong and target in case.known_on:
        if verdict == "ok":
            verdict, detail = "now right", f"remove known_wrong from the case {name}: {case.known_wrong}"
        else:
            verdict, detail = "known", f"{case.known_wrong} ({detail})"
    return Outcome(name, target, verdict, detail, instructions, time.monotonic() - start)


def run(options: argparse.Namespace) -> int:
    chosen = [case for case in cases() if not options.only or case.name in options.only]
    with tempfile.TemporaryDirectory(prefix="gpulower-amd-") as temporary:
        folder = Path(options.keep or temporary).absolute()
        if options.against:
            return elsewhere.run(options, chosen, folder)
        failures = compile_cases(options.gpulower, folder, chosen, options.target)
        for failure in failures:
            print(f"FAILED  {failure}", flush=True)
        outcomes = _execute(options, chosen, folder)
    _table(outcomes, options)
    if options.json:
        Path(options.json).write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1))
    wrong = [outcome for outcome in outcomes if not outcome.right]
    for outcome in wrong:
        print(f"\n{outcome.name} on {outcome.target}: {outcome.verdict}\n  {outcome.detail}")
    total = sum(outcome.right for outcome in outcomes)
    print(f"\n{total} of {len(outcomes)} are right, {sum(o.instructions for o in outcomes)} instructions of waves")
    return 1 if wrong or failures or not outcomes else 0


def _execute(options: argparse.Namespace, chosen: list[Case], folder: Path) -> list[Outcome]:
    with ProcessPoolExecutor(options.processes) as pool:
        futures = []
        for case in chosen:
            for target in options.target:
                image = image_path(folder, case, target)
                if target in case.targets and image.is_file():
                    futures.append(pool.submit(run_case, case.name, target, str(image), options.seed, options.large))
        outcomes = []
        for future in futures:
            outcome = future.result()
            outcomes.append(outcome)
            if options.verbose:
                shown = f"{outcome.seconds:6.2f} s {outcome.instructions:8}"
                print(f"{outcome.name:24} {outcome.target:8} {outcome.verdict:9} {shown}  {outcome.detail[:150]}", flush=True)
    return outcomes


def _table(outcomes: list[Outcome], options: argparse.Namespace) -> None:
    """Kernels down, chips across: the relative error, or what went wrong."""
    print(f"{'kernel':24}" + "".join(f"{target:>10}" for target in options.target))
    for name in dict.fromkeys(outcome.name for outcome in outcomes):
        row = {outcome.target: outcome for outcome in outcomes if outcome.name == name}
        cells = [_cell(row.get(target)) for target in options.target]
        print(f"{name:24}" + "".join(f"{cell:>10}" for cell in cells))


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return outcome.detail if outcome.verdict == "ok" else outcome.verdict.upper()


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m checks", description=__doc__)
    options.add_argument("--gpulower", type=Path, required=True, help="the program that compiles")
    options.add_argument("--target", type=lambda text: text.split(","), default=list(CHIPS), help="chips, separated by commas")
    options.add_argument("--only", nargs="+", metavar="NAME", help="some of the kernels")
    options.add_argument("--seed", type=int, default=1, help="of the inputs, and of everything that hardware leaves open")
    options.add_argument("--large", action="store_true", help="larger sizes, for minutes")
    help_with = "run the kernels by libamdhip64, too, and compare; before `hip`, a launcher with its options"
    options.add_argument("--with", dest="against", metavar="[LAUNCHER...] hip", help=help_with)
    options.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    options.add_argument("--keep", help="a folder that keeps the compiled kernels")
    options.add_argument("--json", help="a file for the outcomes")
    options.add_argument("-v", "--verbose", action="store_true", help="a line for each kernel and chip")
    return options


def main(arguments: list[str] | None = None) -> int:
    return run(parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
