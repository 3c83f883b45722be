"""What was written by hand, beside AMD's own text of the instruction, wherever that text is a program."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np

from amdexec.byhand import FUNCTIONS
from amdexec.compiler import compile_instruction
from amdexec.operation import modes_of, texts
from amdexec.traps import Unknown

Array = Any

# The text is wrong, or says less than the hardware does.
DIFFERENT = {
    "V_DIV_FMAS_F32": "the text knows one of the two scales",
    "V_DIV_FMAS_F64": "the text knows one of the two scales",
    "V_DIV_SCALE_F32": "the text asks for a denormal reciprocal in f64",
    "V_DIV_FIXUP_F32": "the text hands on a NaN as the quotient of two numbers",
    "V_DIV_FIXUP_F64": "the text hands on a NaN as the quotient of two numbers",
    "V_DIV_SCALE_F64": "the text leaves what it does not scale as it is, and takes that to be S0",
    "V_FREXP_EXP_I32_F32": "the text takes the exponent field, which is 0 for all denormals",
    "V_FREXP_EXP_I32_F64": "the text takes the exponent field, which is 0 for all denormals",
    "V_FREXP_EXP_I16_F16": "the text takes the exponent field, which is 0 for all denormals",
    "V_RNDNE_F32": "floor(x + 0.5) rounds twice for large numbers",
    "V_RNDNE_F16": "floor(x + 0.5) rounds twice for large numbers",
    "V_RNDNE_F64": "floor(x + 0.5) rounds twice for large numbers",
    "S_RNDNE_F32": "floor(x + 0.5) rounds twice for large numbers",
    "S_RNDNE_F16": "floor(x + 0.5) rounds twice for large numbers",
    "V_MED3_F32": "the text compares with ==, and takes one NaN for another",
    "V_MED3_F16": "the text compares with ==, and takes one NaN for another",
    "V_MED3_NUM_F32": "the text compares with ==, and takes one NaN for another",
    "V_MED3_NUM_F16": "the text compares with ==, and takes one NaN for another",
    "V_EXP_F32": "the transcendental unit takes and makes no denormals",
    "V_LOG_F32": "the transcendental unit takes and makes no denormals",
    "V_RCP_F32": "the transcendental unit takes and makes no denormals",
    "V_RCP_IFLAG_F32": "the transcendental unit takes and makes no denormals",
    "V_RSQ_F32": "the transcendental unit takes and makes no denormals; 1 / sqrt(x) rounds twice",
    "V_RSQ_F16": "1 / sqrt(x) rounds twice",
    "V_SQRT_F32": "the transcendental unit takes and makes no denormals",
    "V_S_EXP_F32": "as V_EXP_F32",
    "V_S_LOG_F32": "as V_LOG_F32",
    "V_S_RCP_F32": "as V_RCP_F32",
    "V_S_RSQ_F32": "as V_RSQ_F32",
    "V_S_RSQ_F16": "as V_RSQ_F16",
    "V_S_SQRT_F32": "as V_SQRT_F32",
}


def inputs(width: int, kind: str, rng: np.random.Generator) -> Array:
    """Random bits, and the values that matter, of floats and of integers."""
    dtype = np.uint64 if width == 64 else np.uint32
    bits = np.frombuffer(rng.bytes(64 * width // 8), dtype).copy()
    if kind in ("F16", "F32", "F64"):
        real = {"F16": np.float16, "F32": np.float32, "F64": np.float64}[kind]
        special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 100.25], real)
        raw = special.view({"F16": np.uint16, "F32": np.uint32, "F64": np.uint64}[kind]).astype(dtype)
        bits[: len(raw)] = raw
        bits[20:40] = (
            (rng.standard_normal(20) * 4).astype(real).view(raw.dtype if kind != "F16" else np.uint16).astype(dtype)[:20]
            if (kind == "F16")
            else (rng.standard_normal(20) * 4).astype(real).view(dtype)
        )
    else:
        bits[:6] = [0, 1, 2**31, 2**32 - 1, 7, 255]
    return rng.permutation(bits)


def widths_of(name: str) -> dict[str, int]:
    wide = 64 if name.endswith(("F64", "B64")) else 32
    return {"S0": wide, "S1": 32 if "LDEXP" in name else wide, "S2": wide, "D0": wide if "BCNT" not in name else 32}


class ByHand(unittest.TestCase):
    def test_agrees_with_amds_text(self) -> None:
        compared = 0
        for family in ("cdna", "rdna3", "rdna4"):
            for name in FUNCTIONS:
                if name in DIFFERENT or not name.startswith("V_"):
                    continue
                text = next((texts(family)[key] for key in (name, f"{name}_E32", f"{name}_E64") if key in texts(family)), None)
                if text is None:
                    continue
                widths = widths_of(name)
                try:
                    compiled = compile_instruction(name, text, scalar=False, widths=widths, modes=modes_of(64, 0xF0, False))
                except Unknown:
                    continue
                self.compare(family, name, compiled.run, widths)
                compared += 1
        self.assertGreater(compared, 60)

    def compare(self, family: str, name: str, compiled: Any, widths: dict[str, int]) -> None:
        rng = np.random.default_rng(7)
        kind = name[-3:] if "CVT" not in name else "F32" if name.endswith("F32") else ""
        for _ in range(4):
            sources = [inputs(widths[place], kind, rng) for place in ("S0", "S1", "S2")]
            lane = np.arange(64, dtype=np.uint32)
            rest = (np.zeros(64, np.uint32), False, np.ones(64, np.bool_), (1 << 64) - 1, lane, np.uint32(0), np.uint32(0))
            with np.errstate(all="ignore"):
                expected, actual = compiled(*sources, *rest)[0], FUNCTIONS[name](*sources, *rest)[0]
            np.testing.assert_array_equal(canonical(actual, name), canonical(expected, name), f"{family} {name}")


def canonical(bits: Array, name: str) -> Array:
    """One NaN for all: their payloads are no part of what is compared."""
    real = {"F16": np.float16, "F32": np.float32, "F64": np.float64}.get(name[-3:])
    bits = np.broadcast_to(bits, (64,))
    if real is None or "CVT_PK" in name:
        return bits
    values = bits.astype(np.uint16).view(real) if real is np.float16 else np.ascontiguousarray(bits).view(real)
    return np.where(np.isnan(values), 0x7E00, bits)


if __name__ == "__main__":
    unittest.main()
