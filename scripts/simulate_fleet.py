#!/usr/bin/env python3
"""A fleet that shares a cache, as a program: docs/fleet.md. Standard library alone; the same numbers for the same seed.

Machines start with an empty disk and ask for kernels, the popular ones most often (Zipf). What none has, one compiles and uploads.
"""

import argparse
import bisect
import heapq
import itertools
import random


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=20_000, help="different ones")
    parser.add_argument("--each", type=int, default=2_000, help="kernels that a machine asks for")
    parser.add_argument("--zipf", type=float, default=1.0)
    parser.add_argument("--bytes", type=int, default=12_000, help="of an entry, compressed")
    parser.add_argument("--compile", type=float, default=0.5, help="seconds for one kernel on one core")
    parser.add_argument("--wave", type=float, default=600.0, help="seconds in which the machines start")
    parser.add_argument("--rate", type=float, default=50.0, help="kernels that a machine asks for in a second while all are known")
    options = parser.parse_args()
    random.seed(1)
    weights = list(itertools.accumulate((rank + 1) ** -options.zipf for rank in range(options.kernels)))
    known_at: dict[int, float] = {}
    asked = local = shared = compiled = twice = 0
    load: dict[int, int] = {}
    # Machines by the time at which they ask next.
    queue = [(random.uniform(0, options.wave), number) for number in range(options.machines)]
    heapq.heapify(queue)
    disks: list[set[int]] = [set() for _ in range(options.machines)]
    left = [options.each] * options.machines
    while queue:
        now, number = heapq.heappop(queue)
        kernel = bisect.bisect(weights, random.random() * weights[-1])
        asked += 1
        took = 1 / options.rate
        if kernel in disks[number]:
            local += 1
        else:
            disks[number].add(kernel)
            load[int(now)] = load.get(int(now), 0) + 1
            if known_at.get(kernel, float("inf")) <= now:
                shared += 1
            else:
                compiled += 1
                twice += kernel in known_at
                took += options.compile
                known_at[kernel] = min(known_at.get(kernel, float("inf")), now + options.compile)
                load[int(now)] += 1
        left[number] -= 1
        if left[number]:
            heapq.heappush(queue, (now + took, number))
    requests = sum(load.values())
    busiest = max(load.values())
    print(f"asked {asked}, on disk {local / asked:.1%}, shared {shared / asked:.1%}, compiled {compiled / asked:.2%}")
    print(f"of {asked - local} questions to the service {shared / (asked - local):.1%} are hits")
    print(f"compiled twice because two began at once: {twice} of {compiled}")
    print(f"kept: {len(known_at)} entries, {len(known_at) * options.bytes / 2**20:.0f} MiB")
    print(f"sent: {shared * options.bytes / 2**30:.1f} GiB, received {compiled * options.bytes / 2**20:.0f} MiB")
    print(f"requests: {requests}, in the busiest second {busiest}, {busiest * options.bytes / 2**20:.1f} MiB/s")
    without = (asked - local) * options.compile / 3600
    print(f"CPU: {compiled * options.compile / 3600:.1f} h instead of {without:.1f} h")


if __name__ == "__main__":
    main()
