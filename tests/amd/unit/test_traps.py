"""What no correct program does has to be noticed; what is correct, and looks like it, has to pass."""

from __future__ import annotations

import unittest

import numpy as np

from amdexec.traps import Trap, Unknown

from .assembler import assemble, run, run_assembled
from .test_semantics import barrier

X = np.arange(1, 257, dtype=np.uint32).reshape(64, 4)
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")

_WORDS = {
    "cdna": {"load": "global_load_dword", "store": "global_store_dword", "write": "ds_write_b32", "read": "ds_read_b32"},
    "rdna": {"load": "global_load_b32", "store": "global_store_b32", "write": "ds_store_b32", "read": "ds_load_b32"},
}


def body(target: str, text: str) -> str:
    """The names of a generation in place of {load}, {wait_lds} and the like."""
    family = "cdna" if target in ("gfx90a", "gfx942", "gfx950") else "rdna"
    waits = {
        "wait_vector": "s_wait_loadcnt 0" if target == "gfx1201" else "s_waitcnt vmcnt(0)",
        "wait_lds": "s_wait_dscnt 0" if target == "gfx1201" else "s_waitcnt lgkmcnt(0)",
        "barrier": barrier(target),
        "vcc": "vcc" if family == "cdna" else "vcc_lo",
        "exec": "exec" if family == "cdna" else "exec_lo",
        "and": "s_and_b64" if family == "cdna" else "s_and_b32",
        "size": "b64" if family == "cdna" else "b32",
        "mask": "s[12:13]" if family == "cdna" else "s12",
    }
    return text.format(**_WORDS[family], **waits)


# Registers of a factor and of the result.
_HALF4, _HALF16, _HALF32 = ("f32_4x4x4f16", 2, 4), ("f32_16x16x16f16", 2, 4), ("f32_32x32x8f16", 2, 16)
_FLOAT4, _FLOAT16, _FLOAT32 = ("f32_4x4x1f32", 1, 4), ("f32_16x16x4f32", 1, 4), ("f32_32x32x2f32", 1, 16)
_DOUBLE = ("f64_16x16x4f64", 2, 8)
_Kind = tuple[str, int, int]


def matrix(kind: _Kind, result: int, third: int | None, factor: int = 4) -> str:
    name, few, many = kind

    def some(first: int, count: int) -> str:
        return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"

    addend = "0" if third is None else some(third, many)
    return f"v_mfma_{name} {some(result, many)}, {some(factor, few)}, {some(6, few)}, {addend}"


def result(kind: _Kind) -> str:
    return matrix(kind, 16, None)


def same(kind: _Kind) -> str:
    return matrix(kind, 34, 16)


def overlapping(kind: _Kind) -> str:
    return matrix(kind, 34, 18)


def factor(kind: _Kind) -> str:
    return matrix(kind, 34, None, 16)


def reads_third(kind: _Kind) -> str:
    return matrix(kind, 34, 16)


_READ, _WRITE = "v_mov_b32 v50, v17", "v_mov_b32 v17, 0"
_STORE, _LOAD = "global_store_dword v1, v17, s[10:11]", "global_load_dword v17, v1, s[10:11]"
# Two instructions, and how many wait states llc of LLVM 22 puts between them on gfx90a, gfx942 and gfx950.
_MATRICES = (
    (result(_HALF4), same(_HALF4), (0, 2, 2)),
    (result(_HALF4), overlapping(_HALF4), (2, 3, 4)),
    (result(_HALF4), overlapping(_FLOAT16), (2, 3, 3)),
    (result(_HALF4), _READ, (5, 5, 5)),
    (result(_HALF16), same(_HALF16), (0, 0, 0)),
    (result(_HALF16), overlapping(_HALF16), (8, 5, 6)),
    (result(_HALF16), overlapping(_FLOAT16), (8, 5, 6)),
    (result(_HALF16), overlapping(_DOUBLE), (9, 5, 6)),
    (result(_HALF16), factor(_HALF16), (11, 7, 8)),
    (result(_HALF16), _READ, (11, 7, 8)),
    (result(_HALF16), _WRITE, (11, 7, 8)),
    (result(_HALF16), _STORE, (11, 7, 8)),
    (result(_HALF16), _LOAD, (11, 7, 8)),
    (reads_third(_HALF16), _WRITE, (7, 3, 3)),
    (reads_third(_HALF16), _LOAD, (7, 3, 3)),
    (result(_HALF32), same(_HALF32), (0, 0, 0)),
    (result(_HALF32), overlapping(_HALF32), (16, 9, 10)),
    (result(_HALF32), factor(_DOUBLE), (19, 11, 12)),
    (result(_HALF32), _WRITE, (19, 11, 12)),
    (reads_third(_HALF32), _WRITE, (15, 7, 7)),
    (result(_FLOAT4), same(_FLOAT4), (0, 2, 2)),
    (result(_FLOAT4), overlapping(_FLOAT4), (2, 2, 2)),
    (result(_FLOAT4), _READ, (5, 4, 4)),
    (result(_FLOAT16), same(_FLOAT16), (0, 0, 0)),
    (result(_FLOAT16), overlapping(_FLOAT16), (8, 8, 8)),
    (result(_FLOAT16), overlapping(_HALF16), (8, 0, 0)),
    (result(_FLOAT16), overlapping(_DOUBLE), (9, 8, 8)),
    (result(_FLOAT16), factor(_FLOAT16), (11, 10, 10)),
    (result(_FLOAT16), _STORE, (11, 10, 10)),
    (reads_third(_FLOAT16), _WRITE, (7, 0, 0)),
    (result(_FLOAT32), overlapping(_FLOAT32), (16, 16, 16)),
    (result(_FLOAT32), _READ, (19, 18, 18)),
    (result(_DOUBLE), same(_DOUBLE), (0, 0, 0)),
    (result(_DOUBLE), overlapping(_DOUBLE), (9, 9, 17)),
    (result(_DOUBLE), overlapping(_FLOAT16), (0, 9, 17)),
    (result(_DOUBLE), overlapping(_HALF16), (0, 0, 0)),
    (result(_DOUBLE), factor(_DOUBLE), (11, 11, 19)),
    (result(_DOUBLE), factor(_HALF16), (11, 11, 19)),
    (result(_DOUBLE), _READ, (11, 11, 19)),
    (result(_DOUBLE), _WRITE, (11, 11, 11)),
    (result(_DOUBLE), _STORE, (18, 18, 18)),
    (result(_DOUBLE), _LOAD, (11, 11, 11)),
    (reads_third(_DOUBLE), _WRITE, (0, 0, 0)),
    (result(_DOUBLE), "v_fma_f64 v[50:51], v[4:5], v[4:5], v[4:5]", (2, 2, 2)),
    (_WRITE, factor(_HALF16), (2, 2, 2)),
    (_WRITE, same(_DOUBLE), (2, 2, 2)),
    ("v_cmpx_eq_u32 v8, v9", result(_HALF16), (4, 4, 4)),
)


def waiting(first: str, states: int, second: str) -> str:
    nops = "\n".join("s_nop 0" for _ in range(states))
    return f"s_nop 1\n {first}\n {nops}\n {second}\n s_waitcnt vmcnt(0)"


class Traps(unittest.TestCase):
    def traps(self, text: str, message: str, *, threads: int = 64, lds: int = 1024, targets: tuple[str, ...] = TARGETS) -> None:
        x = np.resize(X, (threads, 4))
        for target in targets:
            with self.subTest(target=target):
                self.assertRaisesRegex(Trap, message, run, target, body(target, text), x, lds=lds)

    def passes(self, text: str, *, threads: int = 64, lds: int = 1024, targets: tuple[str, ...] = TARGETS) -> None:
        x = np.resize(X, (threads, 4))
        for target in targets:
            for seed in range(3):
                with self.subTest(target=target, seed=seed):
                    run(target, body(target, text), x, lds=lds, seed=seed)

    # -- global memory

    def test_an_access_outside_of_every_buffer(self) -> None:
        self.traps("{load} v8, v1, s[10:11] offset:2048\n {wait_vector}", "outside of every buffer .* bytes from the start of y, of 2048")
        self.traps("v_mov_b32 v2, 0\n v_mov_b32 v3, 0\n {load} v8, v[2:3], off\n {wait_vector}", "reads 4 bytes at 0x0")

    def test_a_store_to_what_is_only_read(self) -> None:
        self.traps("v_lshlrev_b32 v2, 4, v0\n {store} v2, v4, s[8:9]", "read-only")

    def test_a_register_used_before_its_load_has_arrived(self) -> None:
        self.traps("{load} v8, v1, s[10:11]\n v_add_f32 v9, v8, v8\n {wait_vector}", "v8 is used while a load into it is outstanding")
        self.passes("{load} v8, v1, s[10:11]\n {wait_vector}\n v_add_f32 v9, v8, v8")

    def test_a_register_overwritten_before_its_load_has_arrived(self) -> None:
        self.traps("{load} v8, v1, s[10:11]\n v_mov_b32 v8, 0\n {wait_vector}", "v8 is used while a load into it is outstanding")

    def test_waiting_for_one_load_of_two(self) -> None:
        two = "{load} v8, v1, s[10:11]\n {load} v9, v1, s[10:11]\n"
        self.passes(two + "s_waitcnt vmcnt(1)\n v_mov_b32 v10, v8\n {wait_vector}", targets=("gfx90a", "gfx942", "gfx1100"))
        late = two + "s_waitcnt vmcnt(1)\n v_mov_b32 v10, v9\n {wait_vector}"
        self.traps(late, "v9 is used", targets=("gfx90a", "gfx942", "gfx1100"))

    def test_scalar_loads_overtake_one_another(self) -> None:
        text = "s_load_dwordx2 s[12:13], s[4:5], 0x0\n s_load_dwordx2 s[14:15], s[4:5], 0x8\n s_waitcnt lgkmcnt(1)\n s_mov_b32 s16, s12"
        self.traps(text, "s12 is used", targets=("gfx90a", "gfx942"))

    # -- workgroup memory

    def test_an_access_outside_of_workgroup_memory(self) -> None:
        self.traps("v_mov_b32 v2, 0x400\n {write} v2, v4\n {wait_lds}", "writes LDS at 1024")
        self.traps("v_mov_b32 v2, 0x400\n {read} v8, v2\n {wait_lds}", "reads LDS at 1024")

    def test_what_was_never_written(self) -> None:
        self.traps("v_mov_b32 v2, 0\n {read} v8, v2\n {wait_lds}\n {store} v1, v8, s[10:11]", "a stored value depends on v8")
        self.traps("{store} v1, v20, s[10:11]", "v20, which was never written")
        self.traps("v_add_f32 v21, v20, v4\n {store} v1, v21, s[10:11]", "v21, which was never written")
        self.traps("{load} v8, v30, s[10:11]\n {wait_vector}", "an address depends on v30")
        self.passes("v_mov_b32 v21, v20\n v_mov_b32 v21, v4\n {store} v1, v21, s[10:11]")

    def test_a_word_of_a_pair_that_is_not_read(self) -> None:
        twice = "v_mov_b32 v20, v4\n v_pk_fma_f32 v[8:9], v[4:5], v[20:21], v[6:7] %s"
        self.passes(twice % "op_sel_hi:[1,0,1]", targets=("gfx90a", "gfx942"))
        self.traps(twice % "" + "\n {store} v1, v9, s[10:11]", "depends on v9", targets=("gfx90a", "gfx942"))

    def test_a_mask_on_its_way_through_a_lane(self) -> None:
        """Undefined for lanes that are off: so it is still after a vector register has kept it."""
        part = "s_mov_b64 exec, 0xff\n v_cmp_eq_u32 vcc, v20, v4\n s_mov_b64 exec, -1\n s_nop 4\n"
        kept = "v_writelane_b32 v21, vcc_lo, 7\n s_nop 4\n v_readlane_b32 s14, v21, 7\n s_mov_b32 s15, 0\n s_nop 4\n"
        others = "s_and_b64 s[14:15], s[14:15], 0xff00\n s_and_b64 exec, exec, s[14:15]\n s_mov_b64 exec, -1"
        self.passes(part + kept + others, targets=("gfx942",))
        self.traps(part + kept + "s_and_b64 exec, exec, s[14:15]", "EXEC depends", targets=("gfx942",))

    def test_a_mask_that_is_inverted(self) -> None:
        """Bit by bit: without optimisation LLVM inverts masks that are undefined for lanes that are off."""
        part = "s_mov_b64 exec, 0xff\n v_cmp_eq_u32 vcc, v20, v4\n s_mov_b64 exec, -1\n s_nop 4\n"
        for inverted in ("s_xor_b64 s[14:15], vcc, -1", "s_not_b64 s[14:15], vcc", "s_xnor_b64 s[14:15], vcc, 0"):
            others = "s_and_b64 s[14:15], s[14:15], 0xff00\n s_and_b64 exec, exec, s[14:15]\n s_mov_b64 exec, -1"
            self.passes(f"{part}{inverted}\n {others}", targets=("gfx942",))
            self.traps(f"{part}{inverted}\n s_and_b64 exec, exec, s[14:15]", "EXEC depends", targets=("gfx942",))

    def test_a_mask_that_is_undefined_for_lanes_that_are_off(self) -> None:
        """The exits of a loop, in a wave that was not full before it."""
        part = "s_mov_b64 exec, 0xff\n v_cmp_eq_u32 vcc, v20, v4\n s_mov_b64 exec, %s\n s_nop 4\n s_and_saveexec_b64 s[14:15], vcc"
        self.passes(part % "0xff00" + "\n s_mov_b64 exec, -1", targets=("gfx942",))
        self.traps(part % "0x100ff", "EXEC depends", targets=("gfx942",))

    def test_registers_by_number(self) -> None:
        """s_set_gpr_idx_on renames the operands of every vector instruction; here v_mov_b32 knows it."""
        text = "s_mov_b32 s12, 1\n s_set_gpr_idx_on s12, gpr_idx(SRC0)\n %s\n s_set_gpr_idx_off"
        self.passes(text % "v_mov_b32 v8, v4", targets=("gfx90a", "gfx942"))
        self.traps(text % "v_add_f32 v8, v4, v5", "behind s_set_gpr_idx_on", targets=("gfx90a", "gfx942"))
        self.traps(text % "v_mov_b32 v8, v19" + "\n {store} v1, v8, s[10:11]", "depends on v8", targets=("gfx90a", "gfx942"))

    def test_a_branch_on_what_was_never_written(self) -> None:
        self.traps("v_cmp_eq_u32 {vcc}, v20, v4\n s_cbranch_vccz 0", "a branch depends on vcc_lo")
        self.traps("v_cmp_eq_u32 {vcc}, v20, v4\n s_nop 4\n {and} {exec}, {exec}, {vcc}", "EXEC depends")

    def test_a_store_that_nobody_waited_for(self) -> None:
        """Each wave reads what the other one stored, after a barrier."""
        exchange = "v_lshlrev_b32 v2, 2, v0\n v_xor_b32 v3, 0x100, v2\n {write} v2, v4\n %s {barrier}\n {read} v8, v3\n {wait_lds}"
        self.traps(exchange % "", "has not waited for its store|with no barrier", threads=128)
        self.passes(exchange % "{wait_lds}\n", threads=128)

    def test_a_missing_barrier(self) -> None:
        text = "v_lshlrev_b32 v2, 2, v0\n v_xor_b32 v3, 0x100, v2\n {write} v2, v4\n {wait_lds}\n {read} v8, v3\n {wait_lds}"
        self.traps(text, "with no barrier between them|never written", threads=128)

    def test_waves_that_pass_different_numbers_of_barriers(self) -> None:
        first = "v_readfirstlane_b32 s12, v0\n s_nop 4\n s_cmp_eq_u32 s12, 0\n s_cbranch_scc0 skip\n {barrier}\n skip:"
        self.traps(first, "waits at a barrier, and wave . has ended", threads=128)
        self.traps(first + "\n {barrier}", "wait at different barriers", threads=128)

    # -- instructions

    def test_an_instruction_that_is_not_known_is_never_skipped(self) -> None:
        self.assertRaises(Unknown, run, "gfx942", ".long 0xd3ff0000\n .long 0", X)
        self.assertRaises(Unknown, run, "gfx1100", "s_sendmsg sendmsg(MSG_INTERRUPT)", X)

    def test_the_end_of_the_code(self) -> None:
        self.traps(
            "s_branch beyond\n .fill 64, 4, 0xBF9F0000\n beyond:\n s_code_end", "runs into the end of the code", targets=("gfx1100",)
        )

    def test_a_trap_of_the_kernels_own(self) -> None:
        self.traps("s_trap 2", "ended itself")

    # -- wait states of CDNA

    def test_wait_states(self) -> None:
        lane = "v_readfirstlane_b32 s12, v0\n %s v_readlane_b32 s13, v4, s12"
        self.traps(lane % "", "a lane number needs 4", targets=("gfx90a",))
        self.passes(lane % "s_nop 3\n", targets=("gfx90a", "gfx942"))
        pattern = "v_mov_b32 v9, v4\n %s v_mov_b32_dpp v8, v9 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
        self.traps(pattern % "", "DPP", targets=("gfx90a", "gfx942"))
        self.passes(pattern % "s_nop 1\n", targets=("gfx90a", "gfx942"))
        address = "v_readfirstlane_b32 s14, v0\n s_mov_b32 s16, s10\n s_mov_b32 s17, s11\n {load} v8, v1, s[14:15]"
        self.traps(address, "never written|needs 5", targets=("gfx90a", "gfx942"))
        special = "v_rcp_f32 v9, v4\n %s v_mov_b32 v8, v9"
        self.traps(special % "", "transcendental", targets=("gfx942",))
        self.passes(special % "s_nop 0\n", targets=("gfx942",))
        matrix = "v_mov_b32 v12, 0\n s_nop 7\n v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[6:7], 0\n %s v_mov_b32 v12, v8"
        self.traps(matrix % "s_nop 4\n", "too early after a matrix instruction", targets=("gfx942",))
        self.passes(matrix % "s_nop 7\n s_nop 7\n", targets=("gfx942",))
        self.traps(matrix % "s_nop 4\n s_cbranch_execz skip\n skip:\n", "too early after a matrix instruction", targets=("gfx942",))
        self.passes(matrix % "s_nop 4\n s_cbranch_execnz skip\n s_trap 2\n skip:\n", targets=("gfx942",))

    def test_wait_states_of_matrices(self) -> None:
        for number, target in enumerate(("gfx90a", "gfx942", "gfx950")):
            code = assemble(target, tuple(waiting(first, states[number], second) for first, second, states in _MATRICES))
            early = assemble(target, tuple(waiting(first, max(0, states[number] - 1), second) for first, second, states in _MATRICES))
            for pair, (first, second, states) in enumerate(_MATRICES):
                with self.subTest(target=target, first=first, second=second, states=states[number]):
                    run_assembled(code, pair, X)
                    if states[number]:
                        self.assertRaisesRegex(Trap, " 1 wait states too early|wait states after", run_assembled, early, pair, X)


if __name__ == "__main__":
    unittest.main()
