#!/usr/bin/env python3
"""Builds the example with Bazel: in Bazel's own sandboxes, and by BuildGrid with two workers; each a second time, too. And what
docs/howto/bazel.md shows, as it stands there.

check.py GPULOWER CUDA [FOLDER]. Needs Bazel (Debian: bazel-bootstrap) and, in the environment of this Python, what
requirements.txt lists. Everything is below FOLDER, which is target/bazel by default. `cargo xtask test integrations` does it.
"""

import hashlib
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Where BuildGrid's program is: its environment is that of this Python.
TOOLS = pathlib.Path(sys.executable).parent


def rules(place: pathlib.Path) -> None:
    """The rules, in a new folder."""
    place.mkdir(parents=True)
    for file in ["gpulower.bzl", "BUILD.bazel", "WORKSPACE"]:
        shutil.copy(HERE / file, place)


def example(folder: pathlib.Path, name: str, program: pathlib.Path, cuda: pathlib.Path) -> pathlib.Path:
    """The project, in a folder of its own."""
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    rules(place / "rules")
    shutil.copytree(HERE / "example", place / "project")
    for file in ["gelu.mlir", "softmax.mlir", "user_library.mlir", "lib/scale_and_shift.ll"]:
        shutil.copy(ROOT / "examples" / file, place / "project")
    workspace = (place / "project/WORKSPACE").read_text()
    workspace = workspace.replace("@PROGRAM@", str(program)).replace("@CUDA@", str(cuda)).replace('".."', '"../rules"')
    (place / "project/WORKSPACE").write_text(workspace)
    return place


class Bazel:
    def __init__(self, place: pathlib.Path, remote: str | None) -> None:
        self.place, self.remote = place, remote

    def run(self, *words: str) -> str:
        # A server of its own for each place, which is ended.
        command = ["bazel", f"--output_user_root={self.place}/out", *words]
        run = subprocess.run(command, cwd=self.place / "project", capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"{command}\n{run.stdout}{run.stderr}")
        return run.stderr

    def build(self) -> tuple[dict[str, str], str]:
        words = ["--remote_executor=grpc://" + self.remote, "--remote_timeout=600"] if self.remote else []
        said = self.run("build", "--color=no", "--curses=no", "--jobs=4", *words, "//...")
        files = sorted((self.place / "project/bazel-bin").glob("*/*"))
        digests = {str(file.relative_to(self.place / "project/bazel-bin")): hashlib.sha256(file.read_bytes()).hexdigest()
                   for file in files if file.suffix in {".fatbin", ".ptx"}}
        summary = re.search(r"INFO: (\d+ process.*)", said)
        return digests, summary[1] if summary else said

    def clean(self) -> None:
        self.run("clean")

    def end(self) -> None:
        self.run("shutdown")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def say(what: str, answer: tuple[dict[str, str], str], start: float) -> None:
    print(f"{what}: {len(answer[0])} files; {answer[1]} {time.monotonic() - start:.1f} s", flush=True)


def expect(is_so: bool, what: str) -> None:
    if not is_so:
        sys.exit(f"wrong: {what}")


def locally(folder: pathlib.Path, program: pathlib.Path, cuda: pathlib.Path) -> dict[str, str]:
    """In sandboxes; then again; then with a changed library, which three of the four files do not read."""
    place = example(folder, "local", program, cuda)
    bazel = Bazel(place, None)
    start = time.monotonic()
    first = bazel.build()
    say("sandboxes", first, start)
    expect(len(first[0]) == 4 and "4 linux-sandbox" in first[1], f"four actions in sandboxes: {first}")
    start = time.monotonic()
    second = bazel.build()
    say("again", second, start)
    expect(second[0] == first[0] and "linux-sandbox" not in second[1], f"nothing to do: {second}")
    source = place / "project/softmax.mlir"
    source.write_text("// another line\n" + source.read_text())
    start = time.monotonic()
    third = bazel.build()
    say("a source touched", third, start)
    expect("2 linux-sandbox" in third[1], f"its two files alone: {third}")
    bazel.end()
    return first[0]


def blocks(page: str) -> list[str]:
    """The blocks of code of a page of the documentation."""
    return re.findall(r"^```[^\n]+\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)


def page(folder: pathlib.Path, program: pathlib.Path, cuda: pathlib.Path) -> None:
    """What docs/howto/bazel.md says, with the paths of this machine."""
    place = folder / "page"
    shutil.rmtree(place, ignore_errors=True)
    rules(place / "project/third_party/gpulower")
    workspace, build, console, *_ = blocks("howto/bazel.md")
    workspace = workspace.replace("/usr/local/bin/gpulower", str(program)).replace("/usr/local/cuda", str(cuda))
    (place / "project/WORKSPACE").write_text(workspace)
    (place / "project/BUILD.bazel").write_text(build)
    source = next(block for block in blocks("tutorial.md") if block.startswith("gpu.module @swish"))
    (place / "project/swish.mlir").write_text(source)
    bazel = Bazel(place, None)
    command, *expected, inspect = console.splitlines()
    said = bazel.run(*command.removeprefix("$ bazel ").split(), "--color=no", "--curses=no")
    expect(all(line in said for line in expected), f"docs/howto/bazel.md: not {expected}, but\n{said}")
    words = inspect.removeprefix("$ gpulower ").split()
    subprocess.run([program, *words], cwd=place / "project", stdout=subprocess.DEVNULL, check=True)
    bazel.end()
    print("docs/howto/bazel.md does what it says", flush=True)


def by_buildgrid(folder: pathlib.Path, program: pathlib.Path, cuda: pathlib.Path) -> dict[str, str]:
    port = free_port()
    server_folder = folder / "server"
    shutil.rmtree(server_folder, ignore_errors=True)
    server_folder.mkdir(parents=True)
    configuration = (HERE / "buildgrid.yaml").read_text().replace("port: 0", f"port: {port}")
    (server_folder / "buildgrid.yaml").write_text(configuration)
    with open(server_folder / "log", "w") as log, open(server_folder / "workers", "w") as done:
        start_server = [str(TOOLS / "bgd"), "server", "start", "buildgrid.yaml"]
        server = subprocess.Popen(start_server, cwd=server_folder, stdout=log, stderr=log)
        workers = []
        try:
            for _ in range(120):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.5)
            # Nothing of this environment goes to a worker, and of that nothing to an action.
            workers = [
                subprocess.Popen(
                    [sys.executable, HERE / "worker.py", str(port), name, folder / "worker files" / name],
                    env={"PYTHONUNBUFFERED": "1"}, stdout=done, stderr=log,
                )
                for name in ["first", "second"]
            ]

            def executed() -> list[str]:
                return (server_folder / "workers").read_text().split("\n")[:-1]

            answers = []
            for machine in ["one", "two"]:
                bazel = Bazel(example(folder, machine, program, cuda), f"127.0.0.1:{port}")
                start = time.monotonic()
                answers.append(bazel.build())
                say(f"BuildGrid, machine {machine}", answers[-1], start)
                print(f"  executed so far: {executed()}", flush=True)
                if machine == "one":
                    bazel.clean()
                    start = time.monotonic()
                    again = bazel.build()
                    say("cleaned, and built again", again, start)
                    expect(again[0] == answers[0][0] and len(executed()) == 4, f"nothing executed: {again}, {executed()}")
                bazel.end()
            expect("4 remote" in answers[0][1].replace("remote cache hit", ""), f"four remote actions: {answers[0]}")
            is_known = len(executed()) == 4 and "4 remote cache hit" in answers[1][1]
            expect(is_known, f"nothing executed: {answers[1]}, {executed()}")
            expect({line.split(":")[0] for line in executed()} == {"first", "second"}, f"two workers: {executed()}")
            expect(answers[0][0] == answers[1][0], "other bytes on another machine")
            return answers[0][0]
        finally:
            for process in [*workers, server]:
                process.terminate()
                process.wait()


def main() -> None:
    program, cuda = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "target/bazel").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # As it is installed: debug information would travel to each worker.
    stripped = folder / "gpulower"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    page(folder, stripped, cuda)
    local = locally(folder, stripped, cuda)
    expect(local == by_buildgrid(folder, stripped, cuda), "other bytes by BuildGrid than in sandboxes")
    print("the same bytes everywhere")


if __name__ == "__main__":
    main()
