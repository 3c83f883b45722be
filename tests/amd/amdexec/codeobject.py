"""AMD code objects: the ELF image, its metadata and kernel descriptors, and how a runtime lays it out in memory.

The layouts are those of LLVM's AMDGPUUsage ("Code Object", "Kernel Descriptor").
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from .traps import NoEntry, Unknown

_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_EM_AMDGPU = 224
_PT_LOAD = 1
_SHT_RELA, _SHT_NOTE, _SHT_DYNSYM = 4, 7, 11
_NT_AMDGPU_METADATA = 32
_RELATIVE64, _ABS64 = 13, 3


@dataclass(frozen=True)
class Segment:
    offset: int
    address: int
    file_size: int
    memory_size: int
    writable: bool


@dataclass(frozen=True)
class Descriptor:
    """The 64 bytes at the symbol KERNEL.kd."""

    lds: int
    scratch: int
    kernarg_size: int
    entry: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int

    @classmethod
    def read(cls, raw: bytes, address: int) -> Descriptor:
        lds, scratch, kernarg = struct.unpack_from("<III", raw, 0)
        (entry,) = struct.unpack_from("<q", raw, 16)
        rsrc3, rsrc1, rsrc2 = struct.unpack_from("<III", raw, 44)
        properties, preload = struct.unpack_from("<HH", raw, 56)
        return cls(lds, scratch, kernarg, address + entry, rsrc1, rsrc2, rsrc3, properties, preload)

    @property
    def wave32(self) -> bool:
        return bool(self.properties >> 10 & 1)

    @property
    def float_mode(self) -> int:
        """Rounding in the low four bits (f32, then f16 and f64), denormals in the high four."""
        return self.rsrc1 >> 12 & 0xFF

    @property
    def ieee_mode(self) -> bool:
        return bool(self.rsrc1 >> 23 & 1)

    @property
    def user_sgpr_count(self) -> int:
        return self.rsrc2 >> 1 & 31

    @property
    def workgroup_ids(self) -> tuple[bool, bool, bool]:
        return bool(self.rsrc2 >> 7 & 1), bool(self.rsrc2 >> 8 & 1), bool(self.rsrc2 >> 9 & 1)


@dataclass
class CodeObject:
    data: bytes
    abi_version: int = 0
    segments: list[Segment] = field(default_factory=list)
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)
    symbol_list: list[tuple[str, int]] = field(default_factory=list)
    relocations: list[tuple[int, int, int]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def kernels(self) -> dict[str, dict[str, Any]]:
        return {kernel[".name"]: kernel for kernel in self.metadata["amdhsa.kernels"]}

    @property
    def target(self) -> str:
        """The processor, without features: gfx942. LLVM 23 writes another triple in front of it."""
        found = re.search("-(gfx[^:]+)", str(self.metadata["amdhsa.target"]))
        if found is None:
            raise Unknown(f"the target {self.metadata['amdhsa.target']}")
        return found[1]

    @property
    def version(self) -> int:
        """The version of the code object: 4, 5 or 6."""
        return self.abi_version + 2

    def image(self, base: int) -> bytearray:
        """The segments as they lie in memory at `base`, relocated."""
        size = max(segment.address + segment.memory_size for segment in self.segments)
        memory = bytearray(size)
        for segment in self.segments:
            end = segment.address + segment.file_size
            memory[segment.address : end] = self.data[segment.offset : segment.offset + segment.file_size]
        for offset, info, addend in self.relocations:
            kind = info & 0xFFFFFFFF
            if kind == _RELATIVE64:
                value = base + addend
            elif kind == _ABS64:
                value = base + self.symbol_list[info >> 32][1] + addend
            else:
                raise Unknown(f"relocation {kind}")
            struct.pack_into("<Q", memory, offset, value & 0xFFFFFFFFFFFFFFFF)
        return memory

    def descriptor(self, kernel: str, image: bytearray) -> Descriptor:
        symbol = self.kernels[kernel][".symbol"]
        address, _ = self.symbols[symbol]
        return Descriptor.read(bytes(image[address : address + 64]), address)


def read(path: Path, target: str | None = None) -> CodeObject:
    """The code object in a file: an hsaco, or the entry for `target` of an offload bundle."""
    return parse(unbundled(path.read_bytes(), target))


def unbundled(data: bytes, target: str | None) -> bytes:
    if not data.startswith(_BUNDLE_MAGIC):
        return data
    (count,) = struct.unpack_from("<Q", data, 24)
    position, found = 32, []
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", data, position)
        name = data[position + 24 : position + 24 + length].decode()
        position += 24 + length
        found.append(name)
        if "amdgcn" in name and (target is None or name.split("-")[-1].split(":")[0] == target):
            return data[offset : offset + size]
    raise NoEntry(f"the bundle has no entry for {target}: {', '.join(found)}")


def parse(data: bytes) -> CodeObject:
    if data[:4] != b"\x7fELF" or data[4] != 2:
        raise Unknown("not a 64-bit ELF file")
    if struct.unpack_from("<H", data, 18)[0] != _EM_AMDGPU:
        raise Unknown("an ELF file for another machine than AMD's GPUs")
    code = CodeObject(data, data[8])
    _read_segments(code)
    _read_sections(code)
    if not code.metadata:
        raise Unknown("the code object has no metadata note")
    return code


def _read_segments(code: CodeObject) -> None:
    (start,) = struct.unpack_from("<Q", code.data, 32)
    (count,) = struct.unpack_from("<H", code.data, 56)
    for index in range(count):
        kind, flags, offset, address, _, file_size, memory_size, _ = struct.unpack_from("<IIQQQQQQ", code.data, start + index * 56)
        if kind == _PT_LOAD:
            code.segments.append(Segment(offset, address, file_size, memory_size, bool(flags & 2)))


def _read_sections(code: CodeObject) -> None:
    data = code.data
    (start,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + index * 64) for index in range(count)]
    for section in sections:
        kind, offset, size, link = section[1], section[4], section[5], section[6]
        if kind == _SHT_DYNSYM:
            _read_symbols(code, offset, size, sections[link][4])
        elif kind == _SHT_RELA:
            code.relocations += [struct.unpack_from("<QQq", data, at) for at in range(offset, offset + size, 24)]
        elif kind == _SHT_NOTE:
            _read_notes(code, offset, size)


def _read_symbols(code: CodeObject, offset: int, size: int, strings: int) -> None:
    for at in range(offset, offset + size, 24):
        name, _, _, _, value, length = struct.unpack_from("<IBBHQQ", code.data, at)
        text = code.data[strings + name : code.data.index(b"\0", strings + name)].decode()
        code.symbols[text] = (value, length)
        code.symbol_list.append((text, value))


def _read_notes(code: CodeObject, offset: int, size: int) -> None:
    at = offset
    while at < offset + size:
        name_size, content_size, kind = struct.unpack_from("<III", code.data, at)
        content = at + 12 + (name_size + 3 & ~3)
        if kind == _NT_AMDGPU_METADATA:
            code.metadata = msgpack.unpackb(code.data[content : content + content_size])
        at = content + (content_size + 3 & ~3)
