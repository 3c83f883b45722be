#!/usr/bin/env python3
"""Put what time_on_gpu.py --table wrote between the marks of two pages: means into one, every case into the other.

    table.py RESULTS.json [--output docs/code-quality.md] [--cases docs/lab/code-quality.md]
"""

import argparse
import json
import pathlib
import statistics

MARKS = "<!-- made by cargo xtask quality -->", "<!-- end -->"
BASE = "nvcc"
#: No case is to be slower than this.
GOAL = 1.02


def mean(rows, name, wanted):
    ratios = [row[name][0] for row in rows if wanted(row)]
    return f"{statistics.geometric_mean(ratios):.3f}" if ratios else "-"


def title(results):
    return f"{results['device']}, {len(results['rows'])} cases; ratios to nvcc -O3"


def variants(rows):
    return [name for name in rows[0] if isinstance(rows[0][name], list)]


def means(results):
    rows = results["rows"]
    names = variants(rows)
    lines = [f"{title(results)}.", "", "| geometric mean | cases | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    groups = (("all", lambda row: True), ("block size stated", lambda row: row["form"] == "stated"),
              ("not stated", lambda row: row["form"] == "open"), ("a third, by the hash of the name (*)", lambda row: row["hidden"]))
    for group, wanted in groups:
        count = sum(1 for row in rows if wanted(row))
        lines.append(f"| {group} | {count} | " + " | ".join(mean(rows, name, wanted) for name in names) + " |")
    slower = [str(sum(1 for row in rows if round(row[name][0], 3) > GOAL)) for name in names]
    lines.append(f"| cases above {GOAL} | {len(rows)} | " + " | ".join(slower) + " |")
    return "\n".join(lines)


def cases(results):
    rows = results["rows"]
    names = variants(rows)
    lines = [f"{title(results)}, with the 10th and the 90th percentile of the rounds.", "",
             "| kernel | block size | nvcc [us] | " + " | ".join(names) + " |", "|---|---|---|" + "---|" * len(names)]
    for row in rows:
        ratios = ["{:.3f} ({:.3f}-{:.3f})".format(*row[name]) for name in names]
        kernel = row["kernel"].replace("_", " ") + (" *" if row["hidden"] else "")
        lines.append(f"| {kernel} | {row['form']} | {row[BASE]:.1f} | " + " | ".join(ratios) + " |")
    return "\n".join(lines)


def put(parser, marks, texts):
    """Put texts between the marks of pages: of all pages, or, where one has no marks, of none."""
    start, end = marks
    pages = {}
    for path, text in texts.items():
        before, found, rest = path.read_text().partition(start)
        if not found or end not in rest:
            parser.error(f"{path} has no place for the table: {start} and {end}")
        pages[path] = f"{before}{start}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
    for path, page in pages.items():
        path.write_text(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("docs/code-quality.md"))
    parser.add_argument("--cases", type=pathlib.Path, default=pathlib.Path("docs/lab/code-quality.md"))
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    put(parser, MARKS, {options.output: means(results), options.cases: cases(results)})


if __name__ == "__main__":
    main()
