#!/usr/bin/env python3
"""What the shared cache costs and saves, with Redis on this machine: docs/fleet.md. Needs redis-server and the program."""

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import time


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def module(number: int) -> str:
    return f"""gpu.module @m{number} {{ gpu.func @k{number}(%p: memref<?xf32>, %v: f32) kernel {{
  %i = gpu.thread_id x  %c = arith.constant {number}.5 : f32  %w = arith.addf %v, %c : f32  %s = math.sin %w : f32
  memref.store %s, %p[%i] : memref<?xf32>  gpu.return }} }}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--modules", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        port, hanging = free_port(), socket.socket()
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(64)
        redis = subprocess.Popen(
            ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL
        )
        time.sleep(1)
        url = f"redis://127.0.0.1:{port}/0"

        def run(source: str, machine: str, remote: str) -> tuple[float, float]:
            environment = {**os.environ, "XDG_CACHE_HOME": f"{folder}/{machine}", "GPULOWER_CACHE_REMOTE": remote}
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [options.program, "compile", source, "--target", "sm_90", "-o", f"{folder}/out/"],
                env=environment, check=True, stderr=subprocess.DEVNULL,
            )
            passed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        def show(name: str, results: list[tuple[float, float]]) -> None:
            wall, cpu = zip(*results)
            print(f"{name}: {statistics.median(wall) * 1000:.1f} ms ({min(wall) * 1000:.1f} to {max(wall) * 1000:.1f}), "
                  f"CPU {statistics.median(cpu) * 1000:.1f} ms", flush=True)

        try:
            one, many = f"{folder}/one.mlir", f"{folder}/many.mlir"
            with open(one, "w") as file:
                file.write(module(0))
            run(one, "filler", url)
            disk, remote = [], []
            run(one, "disk", "")
            for number in range(options.rounds):
                disk.append(run(one, "disk", ""))
                # What is known of the toolkit stays: its hashes are no matter of the service.
                shutil.copytree(f"{folder}/disk", f"{folder}/new{number}", ignore=shutil.ignore_patterns("results"))
                remote.append(run(one, f"new{number}", url))
            show("one module from disk", disk)
            show("one module from Redis, with an empty disk", remote)
            without, refused, silent = [], [], []
            for number in range(options.rounds):
                without.append(run(one, f"a{number}", ""))
                refused.append(run(one, f"b{number}", f"redis://127.0.0.1:{free_port()}/0"))
            for number in range(3):
                silent.append(run(one, f"c{number}", f"redis://127.0.0.1:{hanging.getsockname()[1]}/0"))
            show("compiled, no service", without)
            show("compiled, a service where nobody listens", refused)
            show("compiled, a service that does not answer", silent)
            with open(many, "w") as file:
                file.writelines(module(number) for number in range(options.modules))
            run(many, "filler", url)
            show(f"{options.modules} modules, cold", [run(many, f"cold{n}", "") for n in range(3)])
            show(f"{options.modules} modules, warm from Redis, one input", [run(many, f"warm{n}", url) for n in range(5)])
            # Other inputs with the same modules: each module is looked up.
            apart = []
            for number in range(5):
                with open(many, "a") as file:
                    file.write("// another input\n")
                apart.append(run(many, f"other{number}", url))
            show(f"{options.modules} modules, warm from Redis, module by module", apart)
        finally:
            redis.kill()


if __name__ == "__main__":
    main()
