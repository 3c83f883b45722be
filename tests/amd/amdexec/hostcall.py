"""The host's side of AMD's hostcall: what kernels print through `__ockl_printf_*` and `__ockl_fprintf_*`, and memory for their heap.

A wave takes a packet from a stack, fills it in, puts it onto another stack, and sleeps until the host has answered. The layout is
that of ockl's `hostcall_impl.cl`; how a text is put together from messages is ockl's `services.cl`, with AMD's runtime on the other side.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable

from .heap import Heap
from .memory import AddressSpace, Region
from .traps import Trap, Unknown

_PACKETS = 16
_HEADER, _PAYLOAD = 24, 64 * 8 * 8
_PRINTF, _MEMORY = 2, 3
_BEGIN, _END = 1, 2
_STDERR = 1
_CONVERSION = re.compile(r"%(?:%|([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([a-zA-Z]))")

Say = Callable[[str, bool], None]


def say(text: str, error: bool) -> None:
    """Prints as the program itself would."""
    stream = sys.stderr if error else sys.stdout
    stream.write(text)
    stream.flush()


class Host:
    """One for a launch."""

    def __init__(self, space: AddressSpace, heap: Heap, tell: Say = say) -> None:
        self.space, self.heap, self.tell = space, heap, tell
        self.headers = space.add("the hostcall packets", bytes(_HEADER * _PACKETS), writable=True)
        self.payloads = space.add("the hostcall payloads", bytes(_PAYLOAD * _PACKETS), writable=True)
        # An amd_signal_t without a mailbox: no interrupt is sent.
        signal = space.add("the hostcall signal", bytes(64), writable=True)
        for number in range(1, _PACKETS):
            _put(self.headers, _HEADER * number, number - 1 + _PACKETS if number > 1 else 0)
        # The two stacks: the next packet's number behind a tag, or 0; then the mask that leaves the number.
        stacks = struct.pack("<QQQ", _PACKETS - 1 + _PACKETS, 0, _PACKETS - 1)
        head = struct.pack("<QQQ", self.headers.base, self.payloads.base, signal.base)
        self.buffer = space.add("the hostcall buffer", head + stacks, writable=True)
        self.messages: dict[int, list[int]] = {}
        self.count = 0

    def serve(self) -> None:
        """Answers what lies on the stack."""
        top = _get(self.buffer, 32)
        _put(self.buffer, 32, 0)
        while top:
            number = top & _PACKETS - 1
            following, active, service, control = struct.unpack("<QQII", self.headers.data[_HEADER * number :][:_HEADER].tobytes())
            if service not in (_PRINTF, _MEMORY):
                raise Unknown(f"a call to the host for service {service}")
            for lane in range(64):
                if active >> lane & 1:
                    at = _PAYLOAD * number + 64 * lane
                    words = struct.unpack("<8Q", self.payloads.data[at : at + 64].tobytes())
                    answer = self.message(words) if service == _PRINTF else self.heap.request(self.space, words[0], words[1])
                    _put(self.payloads, at, answer)
            self.headers.data[_HEADER * number + 20 :][:4] = list(struct.pack("<I", control & ~1))
            top = following

    def message(self, words: tuple[int, ...]) -> int:
        """A part of a text; the answer names the text to the next part."""
        descriptor = words[0]
        if descriptor & _BEGIN:
            self.count += 1
            descriptor = self.count << 8 | descriptor & 0xFE
            self.messages[self.count] = []
        number = descriptor >> 8
        if number not in self.messages:
            raise Trap(f"prints a part of text {number}, which has ended or not begun")
        self.messages[number] += words[1 : 1 + (descriptor >> 5 & 7)]
        if descriptor & _END:
            parts = self.messages.pop(number)
            self.tell(formatted(parts[1:]), bool(parts[0] & _STDERR))
        return descriptor & ~_END


def _get(region: Region, at: int) -> int:
    return int.from_bytes(region.data[at : at + 8].tobytes(), "little")


def _put(region: Region, at: int, value: int) -> None:
    region.data[at : at + 8] = list(value.to_bytes(8, "little"))


def formatted(words: list[int]) -> str:
    """What printf makes of a format and its arguments, each of them in words of 8 bytes; texts end with a zero."""
    words = list(words)

    def text() -> str:
        found = b""
        while words:
            word = words.pop(0).to_bytes(8, "little")
            found += word
            if b"\0" in word:
                break
        return found.split(b"\0")[0].decode(errors="replace")

    def argument() -> int:
        if not words:
            raise Trap("prints more values than it was given")
        return words.pop(0)

    def one(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        flags, width, precision, size, kind = match.groups()
        width = str(argument()) if width == "*" else width
        precision = str(argument()) if precision == "*" else precision
        shape = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        if kind == "s":
            return (shape + "s") % text()
        if kind == "c":
            return (shape + "c") % chr(argument() & 0xFF)
        if kind == "p":
            return (f"%{flags}{width}s") % hex(argument())
        if kind in "eEfFgGaA":
            value: float = struct.unpack("<d", argument().to_bytes(8, "little"))[0]
            return value.hex() if kind in "aA" else (shape + kind) % value
        if kind not in "diuoxX":
            raise Unknown(f"prints with {match[0]}")
        bits = {"hh": 8, "h": 16, None: 32}.get(size, 64)
        number = argument() & (1 << bits) - 1
        if kind in "di" and number >> bits - 1:
            number -= 1 << bits
        return (shape + ("d" if kind in "diu" else kind)) % number

    return _CONVERSION.sub(one, text())
