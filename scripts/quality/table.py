#!/usr/bin/env python3
"""Put what time_on_gpu.py --table wrote into docs/code-quality.md, between the marks for it.

    table.py RESULTS.json [--output docs/code-quality.md]
"""

import argparse
import json
import pathlib
import statistics

START, END = "<!-- made by cargo xtask quality -->", "<!-- end -->"
BASE = "nvcc"


def mean(rows, name, wanted):
    ratios = [row[name][0] for row in rows if wanted(row)]
    return f"{statistics.geometric_mean(ratios):.3f}" if ratios else "-"


def text(results):
    rows = results["rows"]
    names = [name for name in rows[0] if isinstance(rows[0][name], list)]
    lines = [f"{results['device']}, {len(rows)} cases; ratios to nvcc -O3, with the 10th and the 90th percentile of the rounds.", "",
             "| geometric mean | cases | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    groups = (("all", lambda row: True), ("block size stated", lambda row: row["form"] == "stated"),
              ("not stated", lambda row: row["form"] == "open"), ("a third, by the hash of the name (*)", lambda row: row["hidden"]))
    for title, wanted in groups:
        count = sum(1 for row in rows if wanted(row))
        lines.append(f"| {title} | {count} | " + " | ".join(mean(rows, name, wanted) for name in names) + " |")
    lines += ["", "| kernel | block size | nvcc [us] | " + " | ".join(names) + " |", "|---|---|---|" + "---|" * len(names)]
    for row in rows:
        ratios = ["{:.3f} ({:.3f}-{:.3f})".format(*row[name]) for name in names]
        kernel = row["kernel"].replace("_", " ") + (" *" if row["hidden"] else "")
        lines.append(f"| {kernel} | {row['form']} | {row[BASE]:.1f} | " + " | ".join(ratios) + " |")
    return "\n".join([START, "", *lines, "", END])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default="docs/code-quality.md")
    options = parser.parse_args()
    page = options.output.read_text()
    before, found, rest = page.partition(START)
    if not found or END not in rest:
        parser.error(f"{options.output} has no place for the table: {START} and {END}")
    options.output.write_text(before + text(json.loads(options.results.read_text())) + rest.partition(END)[2])


if __name__ == "__main__":
    main()
