"""Machine code to instructions, by the decoder in tinygrad's wheel and what it leaves out."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tinygrad.renderer.amd import decode_inst

from .traps import Unknown

FAMILIES = {
    "gfx90a": "cdna",
    "gfx942": "cdna",
    "gfx950": "cdna",
    "gfx1100": "rdna3",
    "gfx1101": "rdna3",
    "gfx1102": "rdna3",
    "gfx1103": "rdna3",
    "gfx1150": "rdna3",
    "gfx1151": "rdna3",
    "gfx1152": "rdna3",
    "gfx1153": "rdna3",
    "gfx1200": "rdna4",
    "gfx1201": "rdna4",
    "gfx9-4-generic": "cdna",
    "gfx11-generic": "rdna3",
    "gfx12-generic": "rdna4",
}


@dataclass(frozen=True)
class Instruction:
    """One instruction. `form` is the encoding without its variant; `fields` is the decoder's object."""

    name: str
    form: str
    variant: str
    size: int
    address: int
    fields: Any
    words: tuple[int, ...]

    @property
    def base(self) -> str:
        """The name without the suffix of an encoding."""
        return self.name.removesuffix("_E32").removesuffix("_E64")

    @property
    def literal(self) -> int:
        return int(getattr(self.fields, "literal", 0) or 0)

    def has(self, field: str) -> bool:
        return hasattr(type(self.fields), field)

    def number(self, field: str, default: int = 0) -> int:
        return int(getattr(self.fields, field)) if self.has(field) else default

    def raw(self, field: str) -> int:
        """The bits of a field, unadorned."""
        bits = getattr(type(self.fields), field)
        return int(self.fields._raw >> bits.lo & bits.mask)

    def __str__(self) -> str:
        return f"{self.name.lower()} ({' '.join(f'{word:08x}' for word in self.words)})"


@dataclass(frozen=True)
class _Bare:
    """An instruction without operands that matter, which the decoder does not know."""

    _raw: int


_VARIANTS = ("_DPP16", "_DPP8", "_SDWA_SDST", "_SDWA", "_LIT", "_MFMA")
# Encodings that the decoder's search leaves out, by their top six bits.
_EXTRA = {"rdna3": {0x38: "MUBUF"}, "rdna4": {0x31: "VBUFFER"}, "cdna": {}}
# Cache control, without operands: nothing to do where there are no caches.
_CACHE_CONTROL = {
    "rdna3": {(0x38, 0x2B): "BUFFER_GL0_INV", (0x38, 0x2C): "BUFFER_GL1_INV"},
    "cdna": {(0x38, 0x3E): "BUFFER_WBINVL1", (0x38, 0x3F): "BUFFER_WBINVL1_VOL", (0x38, 0x28): "BUFFER_WBL2", (0x38, 0x29): "BUFFER_INV"},
    "rdna4": {},
}


# What gfx90a has and the tables of CDNA3 and CDNA4 do not: multiply-add without fusion, and matrices of integers. Encodings of an
# instruction with the same operands stand in, by (mask, bits, stand-in bits, name).
_GFX90A = (
    (0xFE000000, 22 << 25, 59 << 25, "V_MAC_F32_E32"),
    (0xFE000000, 23 << 25, 23 << 25, "V_MADMK_F32_E32"),
    (0xFE000000, 24 << 25, 24 << 25, "V_MADAK_F32_E32"),
    (0xFFFF0000, 0xD1160000, 0xD13B0000, "V_MAC_F32_E64"),
    (0xFFFF0000, 0xD1C10000, 0xD1CB0000, "V_MAD_F32"),
    (0xFFFF0000, 0xD3D40000, 0xD3D60000, "V_MFMA_I32_32X32X8_I8"),
    (0xFFFF0000, 0xD3D50000, 0xD3D70000, "V_MFMA_I32_16X16X16_I8"),
)


def decode(family: str, code: bytes, address: int, target: str = "") -> Instruction:
    """The instruction at the start of `code`."""
    word = int.from_bytes(code[:4], "little")
    if target == "gfx90a":
        for mask, bits, instead, name in _GFX90A:
            if word & mask == bits:
                patched = (word & ~mask | instead).to_bytes(4, "little") + code[4:]
                return replace(decode(family, patched, address), name=name)
    words = tuple(int.from_bytes(code[at : at + 4], "little") for at in range(0, len(code) - 3, 4))
    top = word >> 26
    opcode = word >> 18 & (0x7F if family == "cdna" else 0xFF)
    control = _CACHE_CONTROL[family].get((top, opcode))
    if control:
        return Instruction(control, "CACHE", "", 8, address, _Bare(word), words[:2])
    fields = _fields(family, code, top)
    kind = type(fields).__name__
    variant = next((suffix for suffix in _VARIANTS if kind.endswith(suffix)), "")
    form = kind.removesuffix(variant).removesuffix("_SDST")
    name = f"{fields.opx.name}+{fields.opy.name}" if hasattr(type(fields), "opx") else fields.op.name
    if form == "VOP3P" and fields._base_size == 16:
        form = "VOP3PX2"
    size = fields.size()
    return Instruction(name, form, variant.removeprefix("_").removesuffix("_SDST"), size, address, fields, words[: size // 4])


def _fields(family: str, code: bytes, top: int) -> Any:
    extra = _EXTRA[family].get(top)
    if extra:
        module = importlib.import_module(f"tinygrad.runtime.autogen.amd.{family}.ins")
        return getattr(module, extra).from_bytes(code)
    try:
        fields = decode_inst(code, family)
    except ValueError as error:
        raise Unknown(f"cannot decode {code[:8].hex()}: {error}") from error
    if type(fields).__name__ == "VOP3P" and fields.op.name.startswith(("V_MFMA", "V_SMFMAC")):
        # Matrices of xf32, which the decoder takes for packed arithmetic: whose operands are no accumulation registers.
        return _of_matrices(type(fields), code)
    return _eight_lanes(family, fields, code)


@cache
def _matrices(plain: Any) -> Any:
    """The encoding of matrix instructions, for every operation."""
    matrices = importlib.import_module(plain.__module__).VOP3P_MFMA
    return type("VOP3P_MFMA", (matrices,), {"op": plain.op})


def _of_matrices(plain: Any, code: bytes) -> Any:
    return _matrices(plain).from_bytes(code)


def _eight_lanes(family: str, fields: Any, code: bytes) -> Any:
    """DPP8, which the decoder takes for an operand."""
    source = getattr(type(fields), "src0", None)
    if family == "cdna" or source is None or not type(fields).__name__.startswith("VOP"):
        return fields
    if (fields._raw >> source.lo & source.mask) not in (233, 234) or hasattr(type(fields), "lane_sel_0"):
        return fields
    module = importlib.import_module(type(fields).__module__)
    return getattr(module, f"{type(fields).__name__}_DPP8").from_bytes(code)
