"""Instructions assembled by LLVM and executed, beside numpy: encodings, modifiers, packed values, lane patterns, modes."""

from __future__ import annotations

import math
import unittest
from fractions import Fraction
from typing import Any

import numpy as np

from .assembler import run, run_all

Array = Any
RNG = np.random.default_rng(3)
CDNA, RDNA = ("gfx90a", "gfx942"), ("gfx1100", "gfx1201")
U32, F32, F16 = np.uint32, np.float32, np.float16


def integers(threads: int = 64) -> Array:
    x = RNG.integers(0, 2**32, (threads, 4), np.uint64).astype(U32)
    x[0], x[1], x[2] = 0, 2**32 - 1, [1, 2**31, 31, 255]
    return x


def floats(threads: int = 64) -> Array:
    return (RNG.standard_normal((threads, 4)) * 10).astype(F32).view(U32)


def halves(threads: int = 64) -> Array:
    return (RNG.standard_normal((threads, 8)) * 3).astype(F16).view(U32)


class Instructions(unittest.TestCase):
    def both(self, body: str, x: Array, expected: Array, word: int = 0, targets: tuple[str, ...] = CDNA + RDNA, **more: Any) -> None:
        """v[8 + word] after the body, which has x in v4 to v7."""
        for target in targets:
            with self.subTest(target=target, body=body.strip().splitlines()[0]):
                y = run(target, body, x, **more)[:, word]
                np.testing.assert_array_equal(y, np.asarray(expected).view(U32) if np.asarray(expected).dtype != U32 else expected)

    def each(self, cases: dict[str, Array], x: Array, targets: tuple[str, ...] = CDNA + RDNA, **more: Any) -> None:
        """v8 after each body."""
        for target in targets:
            results = run_all(target, list(cases), x, **more)
            for (body, expected), y in zip(cases.items(), results, strict=True):
                with self.subTest(target=target, body=body):
                    bits = expected if expected.dtype == U32 else expected.view(U32)
                    np.testing.assert_array_equal(y[:, 0], bits)

    # -- comparisons

    def test_a_nan_is_neither_less_nor_greater(self) -> None:
        x = floats()
        x[:20, 0] = F32(np.nan).view(U32)
        x[10:30, 1] = x[10:30, 0]
        a, b = x[:, 0].view(F32), x[:, 1].view(F32)
        other = (a < b) | (a > b)
        for name, expected in {"lg": other, "nlg": ~other, "neq": a != b, "o": (a == a) & (b == b)}.items():
            body = f"v_cmp_{name}_f32 vcc, v4, v5\ns_nop 4\nv_cndmask_b32 v8, 0, 1, vcc"
            self.both(body, x, expected.astype(U32), targets=CDNA)

    # -- integers

    def test_integers(self) -> None:
        x = integers()
        a, b, c, _ = x.astype(np.uint64).T
        i, j = x[:, 0].view(np.int32).astype(np.int64), x[:, 1].view(np.int32).astype(np.int64)
        low = 0xFFFFFFFF
        cases = {
            "v_mul_lo_u32 v8, v4, v5": a * b,
            "v_mul_hi_u32 v8, v4, v5": a * b >> np.uint64(32),
            "v_mul_hi_i32 v8, v4, v5": (i * j >> 32).view(np.uint64),
            "v_add3_u32 v8, v4, v5, v6": a + b + c,
            "v_bfi_b32 v8, v4, v5, v6": (a & b) | (~a & c),
            "v_alignbit_b32 v8, v4, v5, 7": (a << np.uint64(32) | b) >> np.uint64(7),
            "v_and_or_b32 v8, v4, v5, v6": a & b | c,
            "v_lshl_or_b32 v8, v4, 3, v6": a << np.uint64(3) | c,
            "v_min_i32 v8, v4, v5": np.minimum(i, j).view(np.uint64),
            "v_max_u32 v8, v4, v5": np.maximum(a, b),
            "v_ashrrev_i32 v8, 5, v4": (i >> 5).view(np.uint64),
            "v_not_b32 v8, v4": ~a,
            "v_bfe_i32 v8, v4, 4, 8": ((i >> 4 << 56) >> 56).view(np.uint64),
            "v_mul_u32_u24 v8, v4, v5": (a & np.uint64(0xFFFFFF)) * (b & np.uint64(0xFFFFFF)),
            "v_bcnt_u32_b32 v8, v4, v5": np.bitwise_count(a).astype(np.uint64) + b,
        }
        self.each({body: (expected & np.uint64(low)).astype(U32) for body, expected in cases.items()}, x)

    def test_carries(self) -> None:
        x = integers()
        wide = (x[:, 0].astype(object) + (x[:, 1].astype(object) << 32)) + (x[:, 2].astype(object) + (x[:, 3].astype(object) << 32))
        high = np.array([int(value) >> 32 & 0xFFFFFFFF for value in wide], U32)
        add = "v_add_co_u32 v8, vcc, v4, v6\n s_nop 1\n v_addc_co_u32 v9, vcc, v5, v7, vcc"
        self.both(add, x, high, 1, CDNA)
        add = "v_add_co_u32 v8, vcc_lo, v4, v6\n s_nop 0\n v_add_co_ci_u32 v9, vcc_lo, v5, v7, vcc_lo"
        self.both(add, x, high, 1, RDNA)

    def test_scalar_unit(self) -> None:
        """Each on two numbers that all lanes agree on."""
        x = np.tile(np.array([[0xDEADBEEF, 0x12345678, 5, 9]], U32), (64, 1))
        a, b = 0xDEADBEEF, 0x12345678
        cases = {
            "s_add_u32 s14, s12, s13": a + b,
            "s_sub_u32 s14, s12, s13": a - b,
            "s_mul_i32 s14, s12, s13": a * b,
            "s_mul_hi_u32 s14, s12, s13": a * b >> 32,
            "s_lshl_b32 s14, s12, 7": a << 7,
            "s_ashr_i32 s14, s12, 7": (a - 2**32) >> 7,
            "s_and_b32 s14, s12, s13": a & b,
            "s_bfe_u32 s14, s12, 0x80004": a >> 4 & 0xFF,
            "s_brev_b32 s14, s12": int(f"{a:032b}"[::-1], 2),
            "s_bcnt1_i32_b32 s14, s12": a.bit_count(),
            "s_movk_i32 s14, -5": -5,
            "s_cmp_gt_u32 s12, s13\n s_cselect_b32 s14, s12, s13": a,
            "s_cmp_gt_i32 s12, s13\n s_cselect_b32 s14, s12, s13": b,
            "s_min_i32 s14, s12, s13": a,
            "s_pack_ll_b32_b16 s14, s12, s13": (a & 0xFFFF) | (b & 0xFFFF) << 16,
        }
        head = "v_readfirstlane_b32 s12, v4\n v_readfirstlane_b32 s13, v5\n s_nop 4\n"
        whole = {f"{head} {body}\n v_mov_b32 v8, s14": np.full(64, expected & 0xFFFFFFFF, U32) for body, expected in cases.items()}
        self.each(whole, x)

    # -- floats

    def test_fused_multiply_add_is_rounded_once(self) -> None:
        x = floats()
        x[3:9] = np.array([[1 + 2**-23, 1 + 2**-23, -1, 0]] * 6, F32).view(U32)
        values = x.view(F32)
        exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c, _ in values]
        self.both("v_fma_f32 v8, v4, v5, v6", x, np.array([_nearest(value) for value in exact], F32))

    def test_float_arithmetic(self) -> None:
        x = floats()
        a, b, _, _ = x.view(F32).T
        cases = {
            "v_add_f32 v8, v4, v5": a + b,
            "v_mul_f32 v8, v4, v5": a * b,
            "v_sub_f32 v8, v4, v5": a - b,
            "v_add_f32 v8, -v4, |v5|": -a + np.abs(b),
            "v_mul_f32 v8, v4, v5 mul:2": a * b * F32(2),
            "v_mul_f32 v8, v4, v5 div:2": a * b / F32(2),
            "v_add_f32 v8, v4, v5 clamp": np.clip(a + b, F32(0), F32(1)),
            "v_max_f32 v8, v4, v5": np.maximum(a, b),
            "v_trunc_f32 v8, v4": np.trunc(a),
            "v_rndne_f32 v8, v4": np.rint(a),
            "v_floor_f32 v8, v4": np.floor(a),
            "v_fract_f32 v8, v4": a - np.floor(a),
            "v_cvt_i32_f32 v8, v4": np.trunc(a).astype(np.int32),
            "v_cvt_f32_i32 v8, v4": x[:, 0].view(np.int32).astype(F32),
            "v_ldexp_f32 v8, v4, 5": a * F32(32),
            "v_med3_f32 v8, v4, v5, 1.0": np.sort(np.stack([a, b, np.ones_like(a)]), axis=0)[1],
        }
        self.each(cases, x)

    def test_transcendentals_are_close(self) -> None:
        x = np.abs(floats().view(F32)).view(U32)
        a = x.view(F32)[:, 0].astype(np.float64)
        functions = {"exp": np.exp2(a), "log": np.log2(a), "rcp": 1 / a, "rsq": a**-0.5, "sqrt": np.sqrt(a)}
        for target in CDNA + RDNA:
            results = run_all(target, [f"v_{name}_f32 v8, v4\n s_nop 1" for name in functions], x)
            for (name, expected), y in zip(functions.items(), results, strict=True):
                np.testing.assert_allclose(y[:, 0].view(F32), expected, rtol=3e-7, atol=1e-37, err_msg=f"{target} {name}")

    def test_doubles(self) -> None:
        x = RNG.standard_normal((64, 2))
        a, b = x.T
        for body, expected in {
            "v_add_f64 v[8:9], v[4:5], v[6:7]": a + b,
            "v_mul_f64 v[8:9], v[4:5], v[6:7]": a * b,
            "v_fma_f64 v[8:9], v[4:5], v[6:7], v[4:5]": np.array([_nearest64(p, q, p) for p, q in zip(a, b, strict=True)]),
            "v_cvt_f32_f64 v8, v[4:5]\n v_mov_b32 v9, 0": None,
        }.items():
            for target in ("gfx90a", "gfx942", "gfx1100"):
                y = run(target, body, x.view(U32))
                if expected is None:
                    np.testing.assert_array_equal(y[:, 0].view(F32), a.astype(F32))
                else:
                    np.testing.assert_array_equal(np.ascontiguousarray(y[:, :2]).view(np.float64)[:, 0], expected, body)

    def test_quotients_at_the_ends_of_the_range(self) -> None:
        """The sequence that LLVM makes of a division, for f64 and f32, with operands and quotients that are denormals or too large."""
        names = {"f64": ("v[4:5]", "v[6:7]", 2), "f32": ("v4", "v5", 1)}
        for kind, (above, below, words) in names.items():
            real = np.float64 if kind == "f64" else F32
            with np.errstate(all="ignore"):
                a, b = (_extreme(real) for _ in range(2))
                quotient = (a / b).astype(real)
            x = np.zeros((len(a), 4), U32)
            x[:, :words], x[:, words : 2 * words] = a.view(U32).reshape(-1, words), b.view(U32).reshape(-1, words)
            for target in ("gfx942", "gfx1201"):
                y = run(target, _division(kind, above, below, target), x)[:, :words]
                y = np.ascontiguousarray(y).view(real)[:, 0]
                np.testing.assert_array_equal(
                    np.where(np.isnan(y), np.nan, y), np.where(np.isnan(quotient), np.nan, quotient), f"{kind} {target}"
                )

    def test_denormals_follow_the_mode(self) -> None:
        x = np.tile(np.array([[1e-40, 0.5, 1e-38, 1.0]], F32), (64, 1)).view(U32)
        for mode, expected in ((0xF0, F32(1e-40) * F32(0.5)), (0xC0, F32(0))):
            self.both("v_mul_f32 v8, v4, v5", x, np.full(64, expected, F32), mode=mode)
        for mode, expected in ((0xF0, F32(1e-38) * F32(0.5)), (0xC0, F32(0))):
            self.both("v_mul_f32 v8, v6, v5", x, np.full(64, expected, F32), mode=mode)

    def test_rounding_follows_the_mode(self) -> None:
        """1 + 2^-24 lies between two floats."""
        x = np.tile(np.array([[1.0, 2.0**-24, -1.0, -(2.0**-24)]], F32), (64, 1)).view(U32)
        up, one = F32(1 + 2**-23), F32(1)
        for mode, plus, minus in ((0, one, -one), (1, up, -one), (2, one, -up), (3, one, -one)):
            self.both("v_add_f32 v8, v4, v5", x, np.full(64, plus, F32), mode=0xF0 | mode)
            self.both("v_add_f32 v8, v6, v7", x, np.full(64, minus, F32), mode=0xF0 | mode)

    # -- halves and packed values

    def test_packed_halves(self) -> None:
        x = halves()
        pairs = x.view(F16).reshape(64, 4, 2)
        a, b, c = pairs[:, 0], pairs[:, 1], pairs[:, 2]
        fused = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(F16)
        for body, expected in {
            "v_pk_add_f16 v8, v4, v5": a + b,
            "v_pk_mul_f16 v8, v4, v5": a * b,
            "v_pk_fma_f16 v8, v4, v5, v6": fused,
            "v_pk_add_f16 v8, v4, v5 op_sel:[1,0] op_sel_hi:[0,1]": a[:, ::-1] + b,
            "v_pk_add_f16 v8, v4, v5 neg_lo:[1,0] neg_hi:[0,1]": np.stack([-a[:, 0] + b[:, 0], a[:, 1] - b[:, 1]], axis=1),
        }.items():
            self.both(body, x, np.ascontiguousarray(expected.astype(F16)).view(U32)[:, 0])

    def test_packed_floats(self) -> None:
        x = floats()
        a, b, c, d = x.view(F32).T
        for body, words in {
            "v_pk_add_f32 v[8:9], v[4:5], v[6:7]": (a + c, b + d),
            "v_pk_mul_f32 v[8:9], v[4:5], v[6:7]": (a * c, b * d),
            "v_pk_mul_f32 v[8:9], v[4:5], v[6:7] op_sel:[1,0] op_sel_hi:[0,1]": (b * c, a * d),
        }.items():
            for word, expected in enumerate(words):
                self.both(body, x, expected, word, CDNA)

    def test_moves_by_the_number_of_a_register(self) -> None:
        """An element of a vector by its number, as code without optimisation does it on GFX9."""
        x = integers()
        read = "s_mov_b32 s12, 2\n s_set_gpr_idx_on s12, gpr_idx(SRC0)\n v_mov_b32 v8, v4\n s_set_gpr_idx_off\n v_mov_b32 v9, v4"
        write = "s_mov_b32 s12, 3\n s_set_gpr_idx_on s12, gpr_idx(DST)\n v_mov_b32 v8, v5\n s_set_gpr_idx_off\n v_mov_b32 v8, v4"
        self.both(read, x, x[:, 2], targets=CDNA)
        self.both(read, x, x[:, 0], word=1, targets=CDNA)
        self.both(write, x, x[:, 1], word=3, targets=CDNA)
        self.both(write, x, x[:, 0], targets=CDNA)
        relative = "s_mov_b32 m0, 2\n v_movrels_b32 v8, v4\n v_movreld_b32 v9, v5"
        self.both(relative, x, x[:, 2], targets=RDNA)
        self.both(relative, x, x[:, 1], word=3, targets=RDNA)

    def test_products_of_shortened_floats(self) -> None:
        """v_mfma with xf32: ten bits of the mantissa, so that what has no more is exact."""
        x = (RNG.integers(-512, 512, (64, 4))).astype(F32)
        a, b = x[:, :2].reshape(2, 32, 2), x[:, 2:].reshape(2, 32, 2)
        product = np.einsum("gik,gjk->ij", a, b)
        body = "v_mfma_f32_32x32x4_xf32 v[16:31], v[4:5], v[6:7], 0\n s_nop 7\n s_nop 7\n s_nop 3\n"
        y = run("gfx942", body + "".join(f" v_mov_b32 v{8 + i}, v{16 + i}\n" for i in range(8)), x.view(U32)).view(F32)
        body = body.replace("v[16:31]", "a[0:15]") + "".join(f" v_accvgpr_read_b32 v{8 + i}, a{i}\n" for i in range(8))
        in_accumulators = run("gfx942", body, x.view(U32)).view(F32)
        lane = np.arange(64)
        for element in range(8):
            row = 4 * (lane // 32) + element % 4 + 8 * (element // 4)
            np.testing.assert_array_equal(y[:, element], product[row, lane % 32])
            np.testing.assert_array_equal(in_accumulators[:, element], product[row, lane % 32])

    def test_denormals_of_products_of_halves(self) -> None:
        """gfx90a takes them as zero, later chips do not; those of f32 count everywhere."""
        x = np.zeros((64, 4), np.uint32)
        x.view(F16)[:, :4] = 2.0**-20
        x.view(F16)[:, 4:] = 1.0
        body = "v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[6:7], 0\n s_nop 15"
        for target, expected in (("gfx90a", 0.0), ("gfx942", 16 * 2.0**-20), ("gfx950", 16 * 2.0**-20)):
            name = body.replace("16x16x16_f16", "16x16x16f16") if target == "gfx90a" else body
            y = run(target, name, x).view(F32)
            np.testing.assert_array_equal(y[:, :4], np.full((64, 4), expected, F32))
        x = np.full((64, 4), 1, np.uint32)
        x.view(F32)[:, 1] = 1.0
        for target, name in (("gfx90a", "16x16x4f32"), ("gfx942", "16x16x4_f32")):
            y = run(target, f"v_mfma_f32_{name} v[8:11], v4, v5, 0\n s_nop 15", x)
            np.testing.assert_array_equal(y[:, :4], np.full((64, 4), 4, np.uint32))

    def test_packed_atomics(self) -> None:
        """Two halves at once: one after the other, in any order, where all numbers are exact."""
        x = np.zeros((64, 4), np.uint32)
        lanes = np.arange(64)
        x.view(F16)[:, 0], x.view(F16)[:, 1] = lanes % 8, 1.5
        x[:, 1] = x.view(F16)[:, 0].astype(F32).view(np.uint32) >> 16 | 0x3FC00000
        halves = [(target, "global_atomic_pk_add_f16", 4) for target in ("gfx90a", "gfx942", "gfx950", "gfx1201")]
        cases = [*halves, *((target, "global_atomic_pk_add_bf16", 5) for target in ("gfx942", "gfx950", "gfx1201"))]
        for target, name, register in cases:
            with self.subTest(target=target, name=name):
                y = run(target, f"v_mov_b32 v2, 0\n {name} v2, v{register}, s[10:11]\n s_endpgm", x)[0, :1]
                if register == 4:
                    np.testing.assert_array_equal(y.view(F16), [224, 96])
                else:
                    np.testing.assert_array_equal((y.view(np.uint16).astype(np.uint32) << 16).view(F32), [224, 96])
        for target, name, register in (("gfx942", "ds_pk_add_f16", 4), ("gfx942", "ds_pk_add_bf16", 5), ("gfx1201", "ds_pk_add_f16", 4)):
            with self.subTest(target=target, name=name):
                wait = "s_wait_dscnt 0" if target == "gfx1201" else "s_waitcnt lgkmcnt(0)"
                store, load = ("ds_store_b32", "ds_load_b32") if target == "gfx1201" else ("ds_write_b32", "ds_read_b32")
                meet = f"{wait}\n {barrier(target)}\n"
                body = f"v_mov_b32 v2, 0\n {store} v2, v2\n {meet} {name} v2, v{register}\n {meet}"
                y = run(target, f"{body} {load} v8, v2\n {wait}", x, lds=16)[0, :1]
                if register == 4:
                    np.testing.assert_array_equal(y.view(F16), [224, 96])
                else:
                    np.testing.assert_array_equal((y.view(np.uint16).astype(np.uint32) << 16).view(F32), [224, 96])

    def test_the_other_half_of_the_destination(self) -> None:
        """GFX9 clears it, later generations keep it."""
        x = halves()
        a, b = x.view(F16).reshape(64, 4, 2)[:, 0, 0], x.view(F16).reshape(64, 4, 2)[:, 1, 0]
        total = (a + b).view(np.uint16).astype(U32)
        self.both("v_mov_b32 v8, -1\n v_add_f16 v8, v4, v5", x, total, targets=CDNA)
        self.both("v_mov_b32 v8, -1\n v_add_f16 v8.l, v4.l, v5.l", x, total | U32(0xFFFF0000), targets=("gfx1100",))
        upper = x.view(F16).reshape(64, 4, 2)[:, 0, 1]
        expected = (upper + b).view(np.uint16).astype(U32) << U32(16) | U32(0xFFFF)
        self.both("v_mov_b32 v8, -1\n v_add_f16 v8.h, v4.h, v5.l", x, expected, targets=("gfx1100",))

    def test_mixed_precision(self) -> None:
        x = np.concatenate([floats()[:, :2], halves()[:, :2]], axis=1)
        a, half = x[:, 0].view(F32), np.ascontiguousarray(x[:, 2:]).view(F16)
        expected = (a.astype(np.float64) * half[:, 1].astype(np.float64) + a.astype(np.float64)).astype(F32)
        self.both("v_fma_mix_f32 v8, v4, v6, v4 op_sel:[0,1,0] op_sel_hi:[0,1,0]", x, expected)

    def test_sub_dword_addressing(self) -> None:
        x = integers()
        a, b = x[:, 0], x[:, 1]
        byte = a >> U32(8) & U32(0xFF)
        self.both("v_add_u32_sdwa v8, v4, v5 dst_sel:DWORD src0_sel:BYTE_1 src1_sel:WORD_1", x, byte + (b >> U32(16)), targets=CDNA)
        signed = (a >> U32(24)).astype(np.uint8).view(np.int8).astype(np.int32).view(U32)
        self.both("v_add_u32_sdwa v8, sext(v4), v5 dst_sel:DWORD src0_sel:BYTE_3 src1_sel:DWORD", x, signed + b, targets=CDNA)
        kept = "v_mov_b32 v8, -1\n v_add_u32_sdwa v8, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:WORD_0"
        self.both(kept, x, ((a + b) & U32(0xFFFF)) << U32(16) | U32(0xFFFF), targets=CDNA)

    # -- lanes

    def test_lane_patterns(self) -> None:
        """DPP: an add whose first operand comes from another lane."""
        for target in (*CDNA, *RDNA):
            x = integers(64 if target in CDNA else 32)
            a, lane = x[:, 0], np.arange(len(x))
            row, place = lane & ~15, lane & 15
            patterns: dict[str, tuple[Array, Array]] = {
                "quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf": (lane ^ 3, place >= 0),
                "row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1": (lane - 1, place >= 1),
                "row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:1": (lane + 3, place < 13),
                "row_ror:4 row_mask:0xf bank_mask:0xf": (row + (place - 4 & 15), place >= 0),
                "row_mirror row_mask:0xf bank_mask:0xf": (row + 15 - place, place >= 0),
                "row_half_mirror row_mask:0xf bank_mask:0xf": (lane ^ 7, place >= 0),
            }
            add = "v_add_u32_dpp" if target in CDNA else "v_add_nc_u32_dpp"
            cases = {}
            for pattern, (source, valid) in patterns.items():
                moved = np.where(valid, a[np.clip(source, 0, len(x) - 1)], U32(0))
                cases[f"s_nop 1\n v_mov_b32_dpp v8, v4 {pattern}"] = moved
                cases[f"s_nop 1\n {add} v8, v4, v5 {pattern}"] = moved + x[:, 1]
                # The second operand is the same register, and is not moved.
                cases[f"s_nop 1\n {add} v8, v4, v4 {pattern}"] = moved + a
            self.each(cases, x, (target,))

    def test_without_bound_control_a_lane_keeps_its_value(self) -> None:
        x = integers(32)
        expected = np.where(np.arange(32) & 15, np.roll(x[:, 0], 1), x[:, 1])
        for target in ("gfx942", "gfx1100"):
            body = "v_mov_b32 v8, v5\n s_nop 1\n v_mov_b32_dpp v8, v4 row_shr:1 row_mask:0xf bank_mask:0xf"
            np.testing.assert_array_equal(run(target, body, x)[:, 0], expected)

    def test_rows_of_gfx9(self) -> None:
        x = integers()
        a, lane = x[:, 0], np.arange(64)
        body = "s_nop 1\n v_mov_b32_dpp v8, v4 row_bcast:15 row_mask:0xf bank_mask:0xf"
        self.both(body, x, np.where(lane >= 16, a[np.maximum((lane & ~15) - 1, 0)], U32(0)), targets=CDNA)
        body = "s_nop 1\n v_mov_b32_dpp v8, v4 row_bcast:31 row_mask:0xf bank_mask:0xf"
        self.both(body, x, np.where(lane >= 32, a[31], U32(0)), targets=CDNA)
        body = "s_nop 1\n v_mov_b32_dpp v8, v4 wave_shr:1 row_mask:0xf bank_mask:0xf"
        self.both(body, x, np.where(lane > 0, np.roll(a, 1), U32(0)), targets=("gfx90a",))

    def test_permutations(self) -> None:
        for target in ("gfx942", "gfx1100", "gfx1201"):
            size = 64 if target == "gfx942" else 32
            x = integers(size)
            wait = "s_wait_dscnt 0" if target == "gfx1201" else "s_waitcnt lgkmcnt(0)"
            shifted = "v_lshlrev_b32 v2, 2, v0\n v_xor_b32 v2, 20, v2"
            y = run(target, f"{shifted}\n ds_bpermute_b32 v8, v2, v4\n {wait}", x)[:, 0]
            np.testing.assert_array_equal(y, x[np.arange(size) ^ 5, 0])
            y = run(target, f"{shifted}\n ds_permute_b32 v8, v2, v4\n {wait}", x)[:, 0]
            np.testing.assert_array_equal(y, x[np.arange(size) ^ 5, 0])
            y = run(target, f"ds_swizzle_b32 v8, v4 offset:swizzle(SWAP,4)\n {wait}", x)[:, 0]
            np.testing.assert_array_equal(y, x[np.arange(size) ^ 4, 0])
            y = run(target, "v_readlane_b32 s12, v4, 7\n s_nop 4\n v_mov_b32 v8, s12", x)[:, 0]
            np.testing.assert_array_equal(y, np.full(size, x[7, 0]))
        x = integers(32)
        body = "s_mov_b32 s12, 0x76543210\n s_mov_b32 s13, 0xfedcba98\n v_permlanex16_b32 v8, v4, s12, s13"
        self.both(body, x, x[np.arange(32) ^ 16, 0], targets=RDNA)
        self.both("v_mov_b32_dpp v8, v4 dpp8:[7,6,5,4,3,2,1,0]", x, x[np.arange(32) ^ 7, 0], targets=RDNA)

    # -- memory

    def test_scratch(self) -> None:
        x = integers()
        store, load = "scratch_store_dword off, v4, off offset:8", "scratch_load_dword v8, off, off offset:8"
        self.both(f"{store}\n s_waitcnt vmcnt(0)\n {load}\n s_waitcnt vmcnt(0)", x, x[:, 0], targets=("gfx942",), scratch=64)
        store, load = "scratch_store_b32 off, v4, off offset:8", "scratch_load_b32 v8, off, off offset:8"
        body = f"{store}\n s_waitcnt_vscnt null, 0\n {load}\n s_waitcnt vmcnt(0)"
        self.both(body, x[:32], x[:32, 0], targets=("gfx1100",), scratch=64)

    def buffers(self, target: str, text: str, x: Array, records: int, *, stride: int = 0, check: int = 3, base: str = "8") -> Array:
        """What the threads of a wave make of a buffer of x, or of y; `check` is RDNA's choice of the range check, CDNA has none."""
        words = {"gfx1100": "0", "gfx1201": "null"}.get(target, "0")
        wait = "s_wait_loadcnt 0\n s_wait_storecnt 0" if target == "gfx1201" else "s_waitcnt vmcnt(0)"
        wait += "\n s_waitcnt_vscnt null, 0" if target == "gfx1100" else ""
        flags = 0x27000 if target in CDNA else 0x01004000 | check << 28
        names = {"gfx1100": "b32", "gfx1201": "b32"}
        text = text.format(one=names.get(target, "dword"), four="b128" if target in names else "dwordx4", none=words, wait=wait)
        resource = f"s_mov_b32 s12, s{base}\n s_and_b32 s13, s{int(base) + 1}, 0xffff\n s_or_b32 s13, s13, {stride << 16:#x}\n"
        resource += f"s_mov_b32 s14, {records}\n s_mov_b32 s15, {flags:#x}\n v_lshlrev_b32 v2, 4, v0\n"
        return run(target, resource + text, x)

    def test_buffers(self) -> None:
        """The manuals' range checks: what is outside reads as 0, word by word."""
        x = integers()
        offsets = 16 * np.arange(64)[:, None] + 4 * np.arange(4)
        for target in ("gfx90a", "gfx942", "gfx1100", "gfx1201"):
            with self.subTest(target=target):
                y = self.buffers(target, "buffer_load_{one} v8, v2, s[12:15], {none} offen offset:4\n {wait}", x, 1024)
                np.testing.assert_array_equal(y[:, 0], x[:, 1])
                four = "buffer_load_{four} v[8:11], v2, s[12:15], {none} offen\n {wait}"
                for records in (1024, 100, 102, 0):
                    last = offsets if target in CDNA else offsets + 3
                    np.testing.assert_array_equal(self.buffers(target, four, x, records)[:, :4], np.where(last < records, x, 0))
                behind = "v_sub_u32 v2, 0, 4\n" if target in CDNA else "v_sub_nc_u32 v2, 0, 4\n"
                self.assertFalse(self.buffers(target, behind + four, x, 100)[:, :4].any(), "offsets do not wrap around")
                if target not in CDNA:
                    np.testing.assert_array_equal(self.buffers(target, four, x, 100, check=2)[:, :4], x)
                    self.assertFalse(self.buffers(target, four, x, 0, check=2)[:, :4].any())

    def test_buffers_with_an_index(self) -> None:
        x = integers()
        lanes = np.arange(64)
        for target in ("gfx90a", "gfx942", "gfx1100", "gfx1201"):
            with self.subTest(target=target):
                load = "buffer_load_{one} v8, v0, s[12:15], {none} idxen offset:%d\n {wait}"
                expected = np.where(lanes < 5, x[:, 1], 0)
                np.testing.assert_array_equal(self.buffers(target, load % 4, x, 5, stride=16, check=1)[:, 0], expected)
                np.testing.assert_array_equal(self.buffers(target, load % 4, x, 5, stride=16, check=0)[:, 0], expected)
                beyond = self.buffers(target, load % 16, x, 5, stride=16, check=0)[:, 0]
                np.testing.assert_array_equal(beyond, np.where((lanes < 5) & (target in CDNA), np.roll(x[:, 0], -1), 0))
                both = "v_mov_b32 v3, 8\n v_mov_b32 v2, v0\n buffer_load_{one} v8, v[2:3], s[12:15], {none} idxen offen\n {wait}"
                np.testing.assert_array_equal(self.buffers(target, both, x, 5, stride=16, check=1)[:, 0], np.where(lanes < 5, x[:, 2], 0))

    def test_stores_outside_of_buffers(self) -> None:
        """Stores are dropped word by word, atomics as a whole; an atomic that gives back what was there gives 0."""
        x = integers()
        for target in ("gfx90a", "gfx942", "gfx1100", "gfx1201"):
            with self.subTest(target=target):
                stay = "s_endpgm"
                y = self.buffers(target, "buffer_store_{four} v[4:7], v1, s[12:15], {none} offen\n" + stay, x, 72, base="10")
                expected = np.zeros((64, 8), np.uint32)
                expected[:2, :4] = x[:2]
                expected[2, :2] = x[2, :2]
                np.testing.assert_array_equal(y, expected)
                add = "buffer_atomic_add_u32" if target == "gfx1201" else "buffer_atomic_add" if target in CDNA else "buffer_atomic_add_u32"
                back = {"gfx90a": "glc", "gfx942": "sc0", "gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN"}[target]
                value = "v_mov_b32 v8, v4\n v_mov_b32 v9, -1\n"
                store = "global_store_dword" if target in CDNA else "global_store_b32"
                text = f"{value} {add} v8, v1, s[12:15], {{none}} offen {back}\n {{wait}}\n {store} v1, v8, s[10:11] offset:4\n {stay}"
                y = self.buffers(target, text, x, 72, base="10")
                expected = np.zeros((64, 8), np.uint32)
                expected[:3, 0] = x[:3, 0]
                np.testing.assert_array_equal(y, expected)

    def test_lds_addresses_wrap(self) -> None:
        """Base and offset are added in 32 bits: LLVM takes offsets out of bases that are negative without them."""
        x = integers()
        for target, subtract, store, load, wait in (
            ("gfx942", "v_sub_u32", "ds_write_b32", "ds_read_b32", "s_waitcnt lgkmcnt(0)"),
            ("gfx1100", "v_sub_nc_u32", "ds_store_b32", "ds_load_b32", "s_waitcnt lgkmcnt(0)"),
            ("gfx1201", "v_sub_nc_u32", "ds_store_b32", "ds_load_b32", "s_wait_dscnt 0"),
        ):
            body = f"v_lshlrev_b32 v2, 2, v0\n {subtract} v3, 0, v2\n {store} v2, v4\n {wait}\n {barrier(target)}\n"
            y = run(target, f"{body} {load} v8, v3 offset:252\n {wait}", x, lds=256)[:, 0]
            np.testing.assert_array_equal(y, x[::-1, 0])

    def test_atomics_give_back_what_was_there(self) -> None:
        """A counter in workgroup memory: the tickets are 0 to 63, in any order."""
        x = integers()
        for target, add, store, wait in (
            ("gfx942", "ds_add_rtn_u32", "ds_write_b32", "s_waitcnt lgkmcnt(0)"),
            ("gfx1100", "ds_add_rtn_u32", "ds_store_b32", "s_waitcnt lgkmcnt(0)"),
            ("gfx1201", "ds_add_rtn_u32", "ds_store_b32", "s_wait_dscnt 0"),
        ):
            body = f"v_mov_b32 v2, 0\n v_mov_b32 v3, 1\n {store} v2, v2\n {wait}\n {barrier(target)}\n {add} v8, v2, v3\n {wait}"
            y = run(target, body, x, lds=16, seed=5)[:, 0]
            self.assertEqual(sorted(y.tolist()), list(range(64)))


def barrier(target: str) -> str:
    return "s_barrier_signal -1\n s_barrier_wait -1" if target == "gfx1201" else "s_barrier"


def _extreme(real: Any) -> Array:
    """Numbers of every size, and those at the ends."""
    info = np.finfo(real)
    ends = np.array([0, -0.0, np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal], real)
    low, high = math.log10(info.smallest_subnormal), math.log10(info.max)
    numbers = (10.0 ** RNG.uniform(low, high, 192).astype(np.longdouble)).astype(real) * RNG.choice([1, -1], 192)
    return RNG.permutation(np.concatenate([np.repeat(ends, 8), numbers])).astype(real)


def _division(kind: str, a: str, b: str, target: str) -> str:
    wide = kind == "f64"
    d, r, n, q, e = ("v[16:17]", "v[18:19]", "v[20:21]", "v[22:23]", "v[24:25]") if wide else ("v16", "v18", "v20", "v22", "v24")
    result = "v[8:9]" if wide else "v8"
    carry = "vcc" if target == "gfx942" else "vcc_lo"
    nothing = "s[12:13]" if target == "gfx942" else "s12"
    step = f"v_fma_{kind} {e}, -{d}, {r}, 1.0\n v_fma_{kind} {r}, {r}, {e}, {r}\n "
    return (
        f"v_div_scale_{kind} {d}, {nothing}, {b}, {b}, {a}\n v_rcp_{kind} {r}, {d}\n s_nop 0\n "
        + step * 2
        + f"v_div_scale_{kind} {n}, {carry}, {a}, {b}, {a}\n v_mul_{kind} {q}, {n}, {r}\n "
        + ("" if wide else f"v_fma_{kind} {e}, -{d}, {q}, {n}\n v_fma_{kind} {q}, {e}, {r}, {q}\n ")
        + f"v_fma_{kind} {e}, -{d}, {q}, {n}\n s_nop 4\n v_div_fmas_{kind} {e}, {e}, {r}, {q}\n v_div_fixup_{kind} {result}, {e}, {b}, {a}"
    )


def _nearest(value: Fraction) -> float:
    """The f32 nearest to an exact value, of normal size."""
    if value == 0:
        return 0.0
    _, exponent = math.frexp(float(value))
    unit = Fraction(2) ** (exponent - 24)
    return float(round(value / unit) * unit)


def _nearest64(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


if __name__ == "__main__":
    unittest.main()
