"""Reads MLIR from the standard input and writes the bytes of each #gpu.object in it to FOLDER/0, FOLDER/1, ..."""

import os
import re
import sys

ESCAPE = re.compile(rb'\\([0-9A-F]{2}|["\\nt])')
NAMED = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}


def bytes_of(text):
    """A string of MLIR's syntax as the bytes it stands for."""
    return ESCAPE.sub(lambda match: NAMED.get(match[1]) or bytes.fromhex(match[1].decode()), text)


def payloads(text):
    """The last string of each #gpu.object, which is its payload."""
    starts = [match.start() for match in re.finditer(rb"#gpu\.object<", text)] + [len(text)]
    for start, end in zip(starts, starts[1:]):
        strings = re.findall(rb'"((?:[^"\\]|\\.)*)"\s*>\s*[,\]]', text[start:end])
        yield bytes_of(strings[-1])


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for index, payload in enumerate(payloads(sys.stdin.buffer.read())):
        with open(os.path.join(folder, str(index)), "wb") as file:
            file.write(payload)


main()
