"""The scalar unit: arithmetic, moves, branches, waits and messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .decode import Instruction
from .operands import Operand, format_of, scalar_getter
from .operation import Operation, Run, function, modes_of, text_of
from .traps import Trap, Unknown
from .wave import ALL, EXEC, SCC, VCC, Wave

# Nothing to do where there is no pipeline, no cache and no instruction buffer.
NO_EFFECT = {
    "S_NOP",
    "S_CLAUSE",
    "S_DELAY_ALU",
    "S_WAIT_ALU",
    "S_WAITCNT_DEPCTR",
    "S_SET_INST_PREFETCH_DISTANCE",
    "S_INST_PREFETCH",
    "S_SLEEP",
    "S_SETPRIO",
    "S_ICACHE_INV",
    "S_DCACHE_INV",
    "S_DCACHE_WB",
    "S_TTRACEDATA",
    "S_VERSION",
    "S_SETHALT",
    "S_PREFETCH_INST",
    "S_PREFETCH_INST_PC_REL",
    "S_PREFETCH_DATA",
    "S_PREFETCH_DATA_PC_REL",
}
_MSG_DEALLOC_VGPRS, _MSG_INTERRUPT = 3, 1
_HW_MODE = 1


def build(instruction: Instruction, family: str, wave_size: int) -> Operation:
    name = instruction.name
    if name in NO_EFFECT:
        return Operation(instruction, lambda wave: None, "nop")
    special = _control(instruction, family) or _registers(instruction, family, wave_size)
    return special or _arithmetic(instruction, family, wave_size)


# -- arithmetic


def _arithmetic(instruction: Instruction, family: str, wave_size: int) -> Operation:
    sources = []
    widths: dict[str, int] = {}
    for place, field in (("S0", "ssrc0"), ("S1", "ssrc1")):
        if instruction.has(field):
            kind, bits = format_of(instruction, field)
            sources.append(Operand(instruction.raw(field), kind, max(bits, 32), instruction.literal))
            widths[place] = max(bits, 32)
    _, bits = format_of(instruction, "sdst")
    has_destination = instruction.has("sdst") and "CMPK" not in instruction.name
    destination = instruction.raw("sdst") if instruction.has("sdst") else -1
    widths["D0"] = max(bits, 32)
    destination_bits = widths["D0"]
    if "CMPK" in instruction.name:
        sources = [Operand(destination, "b", 32)]
    getters = [scalar_getter(source) for source in sources]
    immediate = np.uint32(instruction.number("simm16"))
    literal = np.uint32(instruction.literal)
    keyed = tuple(sorted(widths.items()))
    reads_destination = any(part in instruction.name for part in ("ADDK", "MULK", "CMOV", "FMAC", "BITSET"))
    kinds = [np.uint64 if source.bits == 64 else np.uint32 for source in sources]
    whole = np.uint64 if destination_bits == 64 else np.uint32
    mask_kind = np.uint64 if wave_size == 64 else np.uint32
    rows = tuple(range(destination, destination + destination_bits // 32)) if has_destination else ()
    pairs = list(zip(getters, kinds, strict=True))
    compiled_function, compiled = function(family, instruction.name, True, keyed, modes_of(wave_size, 0xF0, True))
    run_function = compiled_function
    # Some manuals have the immediate of SOPK as the last of the sources, others call it SIMM16.
    immediate_is_source = instruction.form == "SOPK" and "SIMM16" not in text_of(family, instruction.name)
    is_float = instruction.base[-3:] in ("F32", "F16")

    def run(wave: Wave) -> None:
        call = run_function
        if is_float and wave.float_mode != 0xF0:
            call, _ = function(family, instruction.name, True, keyed, modes_of(wave_size, wave.float_mode, True))
        values = [make(get(wave)) for get, make in pairs]
        if immediate_is_source:
            values.append(immediate)
        while len(values) < 3:
            values.append(literal)
        old = whole(_value(wave, rows)) if reads_destination else whole(0)
        result, scc, _, execute = call(
            values[0], values[1], values[2], old, np.bool_(wave.scc), None, mask_kind(wave.exec), None, immediate, literal
        )
        if compiled is None or compiled.sets_exec:
            wave.set_exec(int(execute))
        if has_destination and (compiled is None or compiled.sets_destination):
            wave.write_scalar(destination, int(result), destination_bits)
        wave.scc = int(bool(scc))

    reads = tuple(register for source in sources for register in source.registers)
    if reads_destination:
        reads += rows
    if _reads_scc(instruction.name):
        reads += (SCC,)
    writes = rows
    if compiled is None or compiled.sets_scc:
        writes += (SCC,)
    if compiled is not None and compiled.sets_exec:
        writes += (EXEC,)
    return Operation(instruction, run, "salu", reads, writes, _spread(instruction, sources, rows, reads, writes))


def _value(wave: Wave, rows: tuple[int, ...]) -> int:
    return sum(wave.s[row] << 32 * index for index, row in enumerate(rows))


def _reads_scc(name: str) -> bool:
    return any(part in name for part in ("CSELECT", "ADDC", "SUBB", "CMOV", "ADD_CO_CI", "SUB_CO_CI"))


def _spread(
    instruction: Instruction, sources: list[Operand], rows: tuple[int, ...], reads: tuple[int, ...], writes: tuple[int, ...]
) -> Run:
    """Moves and bit operations by bit; of anything else, one undefined bit makes all of the result undefined."""
    name = instruction.name
    single = name.startswith(("S_MOV_B", "S_NOT_B"))
    logic = ("S_AND_B", "S_OR_B", "S_XOR_B", "S_XNOR_B", "S_ANDN2_B", "S_ORN2_B", "S_AND_NOT1_B", "S_OR_NOT1_B", "S_CSELECT")
    moves = single or name.startswith(logic)
    getters = [scalar_getter(source) for source in sources]
    field = scalar_getter(sources[1]) if name in ("S_BFE_U64", "S_BFE_I64") else None

    shift = scalar_getter(sources[1]) if name.startswith(("S_LSHL_B", "S_LSHR_B")) else None

    def shifted(wave: Wave) -> None:
        """Bits of a register that nothing was put into move as others do; without optimisation LLVM shifts them out."""
        assert shift is not None
        bits, size = sum(wave.undefined.get(row, 0) << 32 * index for index, row in enumerate(sources[0].registers)), 32 * len(rows)
        count = int(shift(wave)) & size - 1
        bits = bits << count if "LSHL" in name else bits >> count
        for index, row in enumerate(rows):
            wave.set_undefined_bits(row, bits >> 32 * index & ALL)
        wave.set_undefined_bits(SCC, int(bits & (1 << size) - 1 != 0))

    def is_bad(wave: Wave) -> bool:
        if instruction.name.startswith("S_AND_SAVEEXEC_B"):
            # Lanes that are off stay off: a loop collects only those that were on.
            halves = enumerate(sources[0].registers)
            return any(wave.undefined.get(register, 0) & wave.exec >> 32 * half for half, register in halves)
        if field is None:
            return any(register in wave.undefined for register in reads)
        # LLVM extracts from a pair whose upper half is nothing what lies in the lower half.
        offset, width = int(field(wave)) & 63, int(field(wave)) >> 16 & 127
        bits = ((1 << width) - 1) << offset
        halves = enumerate(sources[0].registers)
        fields = any(wave.undefined.get(register, 0) & bits >> 32 * half for half, register in halves)
        return fields or any(register in wave.undefined for register in sources[1].registers)

    def by_bit(wave: Wave) -> bool:
        results = []
        for index in range(len(rows)):
            masks, values = [], []
            for source, get in zip(sources, getters, strict=True):
                masks.append(wave.undefined.get(source.registers[index], 0) if source.registers else 0)
                values.append(int(get(wave)) >> 32 * index & ALL)
            results.append(_bits(name, masks, values, single))
        for row, bits in zip(rows, results, strict=True):
            if row in (EXEC, EXEC + 1) and bits:
                raise Trap("EXEC depends on a value that was never written")
            wave.set_undefined_bits(row, bits)
        if SCC in writes:
            wave.set_undefined_bits(SCC, int(any(results)))
        return True

    def spread(wave: Wave) -> None:
        undefined = wave.undefined
        bad = is_bad(wave)
        if bad and shift is not None and EXEC not in rows and not any(register in undefined for register in sources[1].registers):
            return shifted(wave)
        if bad and moves and all(len(source.registers) == len(rows) or not source.registers for source in sources):
            if "CSELECT" in name:
                chosen = sources[0] if wave.scc else sources[1]
                for index, row in enumerate(rows):
                    bits = undefined.get(chosen.registers[index], 0) if chosen.registers else 0
                    wave.set_undefined_bits(row, ALL if SCC in undefined else bits)
                return
            by_bit(wave)
            return
        if bad and EXEC in writes:
            raise Trap("EXEC depends on a value that was never written")
        for register in writes:
            if bad:
                wave.set_undefined_bits(register, 1 if register == SCC else ALL)
            elif register in undefined:
                del undefined[register]

    return spread


def _bits(name: str, masks: list[int], values: list[int], single: bool) -> int:
    if single:
        return masks[0]
    a, b, x, y = masks[0], masks[1], values[0], values[1]
    if name.startswith(("S_XOR", "S_XNOR")):
        return a | b
    if "N2" in name or "NOT1" in name:
        y = ~y & ALL
    if "AND" in name:
        return (a & (y | b)) | (b & (x | a))
    return (a & (~y & ALL | b)) | (b & (~x & ALL | a))


# -- control


def _control(instruction: Instruction, family: str) -> Operation | None:
    name = instruction.name
    target = instruction.address + instruction.size + _signed16(instruction.number("simm16")) * 4
    branches: dict[str, tuple[Callable[[Wave], bool], tuple[int, ...]]] = {
        "S_BRANCH": (lambda wave: True, ()),
        "S_CBRANCH_SCC0": (lambda wave: not wave.scc, (SCC,)),
        "S_CBRANCH_SCC1": (lambda wave: bool(wave.scc), (SCC,)),
        "S_CBRANCH_VCCZ": (lambda wave: wave.read_mask(VCC) == 0, (VCC, VCC + 1)),
        "S_CBRANCH_VCCNZ": (lambda wave: wave.read_mask(VCC) != 0, (VCC, VCC + 1)),
        "S_CBRANCH_EXECZ": (lambda wave: wave.exec == 0, ()),
        "S_CBRANCH_EXECNZ": (lambda wave: wave.exec != 0, ()),
    }
    if name in branches:
        taken, reads = branches[name]

        def branch(wave: Wave) -> None:
            for register in reads:
                if register in wave.undefined and (register != VCC + 1 or wave.size == 64):
                    wave.require_defined((register,), "a branch")
            if taken(wave):
                wave.pc = target

        return Operation(instruction, branch, "branch", reads)
    if name in ("S_ENDPGM", "S_ENDPGM_SAVED"):
        return Operation(instruction, _end, "control")
    if name == "S_BARRIER":
        return Operation(instruction, _barrier, "control")
    if name == "S_BARRIER_SIGNAL":
        return Operation(instruction, _signal, "control")
    if name == "S_BARRIER_WAIT":
        return Operation(instruction, _barrier_wait, "control")
    if name == "S_TRAP":
        return Operation(instruction, _trap(instruction.number("simm16")), "control")
    if name == "S_SENDMSG":
        return Operation(instruction, _message(instruction), "control")
    if name.startswith("S_WAIT"):
        return Operation(instruction, _wait(instruction, family), "wait")
    return None


def _signed16(value: int) -> int:
    return value - 0x10000 if value & 0x8000 else value


def _end(wave: Wave) -> None:
    wave.done = True


def _barrier(wave: Wave) -> None:
    wave.barriers += 1
    wave.waiting = True


def _signal(wave: Wave) -> None:
    if wave.mode & 1:
        raise Trap("signals a barrier twice without waiting for it")
    wave.mode |= 1


def _barrier_wait(wave: Wave) -> None:
    if not wave.mode & 1:
        raise Trap("waits for a barrier that it did not signal")
    wave.mode &= ~1
    _barrier(wave)


def _trap(number: int) -> Run:
    def run(wave: Wave) -> None:
        if wave.exec or number != 2:
            raise Trap(f"the kernel ended itself (s_trap {number})")

    return run


def _message(instruction: Instruction) -> Run:
    message = instruction.number("simm16") & 0xFF

    def run(wave: Wave) -> None:
        if message == _MSG_DEALLOC_VGPRS:
            return
        raise Unknown(f"s_sendmsg {message}: there is no host to answer" if message == _MSG_INTERRUPT else f"s_sendmsg {message}")

    return run


def _wait(instruction: Instruction, family: str) -> Run:
    """Which counters have to come down to what."""
    value = instruction.number("simm16")
    name = instruction.name
    limits: dict[str, int]
    if name == "S_WAITCNT" and family == "cdna":
        limits = {"vm": value & 15 | value >> 10 & 0x30, "lgkm": value >> 8 & 15}
        limits = {key: limit for key, limit in limits.items() if limit < (63 if key == "vm" else 15)}
    elif name == "S_WAITCNT":
        limits = {"vm": value >> 10 & 63, "lgkm": value >> 4 & 63}
        limits = {key: limit for key, limit in limits.items() if limit < 63}
    elif name == "S_WAIT_LOADCNT_DSCNT":
        limits = {"vm": value >> 8 & 63, "lds": value & 63}
    elif name == "S_WAIT_STORECNT_DSCNT":
        limits = {"store": value >> 8 & 63, "lds": value & 63}
    else:
        counters = {
            "S_WAITCNT_VSCNT": "store",
            "S_WAITCNT_VMCNT": "vm",
            "S_WAITCNT_LGKMCNT": "lgkm",
            "S_WAITCNT_EXPCNT": "export",
            "S_WAIT_LOADCNT": "vm",
            "S_WAIT_STORECNT": "store",
            "S_WAIT_DSCNT": "lds",
            "S_WAIT_KMCNT": "scalar",
            "S_WAIT_SAMPLECNT": "sample",
            "S_WAIT_BVHCNT": "bvh",
            "S_WAIT_EXPCNT": "export",
            "S_WAIT_XCNT": "translation",
            "S_WAIT_IDLE": "",
        }
        if name not in counters:
            raise Unknown(name)
        limits = {counters[name]: value & 63}
    pairs = tuple(limits.items())

    def run(wave: Wave) -> None:
        for counter, limit in pairs:
            wave.wait(counter, limit)

    return run


# -- what reads or writes other state than scalar registers


def _registers(instruction: Instruction, family: str, wave_size: int) -> Operation | None:
    name = instruction.name
    following = instruction.address + instruction.size
    destination = instruction.raw("sdst") if instruction.has("sdst") else -1
    pair = (destination, destination + 1)
    if name == "S_GETPC_B64":
        return Operation(instruction, lambda wave: wave.write_scalar(destination, following, 64), "salu", (), pair, _defines(pair))
    if name in ("S_SETPC_B64", "S_SWAPPC_B64"):
        source = Operand(instruction.raw("ssrc0"), "b", 64)
        get = scalar_getter(source)

        def jump(wave: Wave) -> None:
            wave.require_defined(source.registers, "a jump")
            to = get(wave)
            if name == "S_SWAPPC_B64":
                wave.write_scalar(destination, following, 64)
            wave.pc = to

        writes = pair if name == "S_SWAPPC_B64" else ()
        return Operation(instruction, jump, "branch", source.registers, writes, _defines(writes))
    if name == "S_CALL_B64":
        offset = following + _signed16(instruction.number("simm16")) * 4

        def call(wave: Wave) -> None:
            wave.write_scalar(destination, following, 64)
            wave.pc = offset

        return Operation(instruction, call, "branch", (), pair, _defines(pair))
    if name == "S_SET_GPR_IDX_ON":
        return _index_registers(instruction)
    if name == "S_SET_GPR_IDX_OFF":

        def stop(wave: Wave) -> None:
            wave.indexing = False

        return Operation(instruction, stop, "salu")
    if name in ("S_SETREG_B32", "S_SETREG_IMM32_B32", "S_GETREG_B32"):
        return _hardware_register(instruction)
    if name in ("S_ROUND_MODE", "S_DENORM_MODE"):
        value, shift = instruction.number("simm16") & 15, 0 if name == "S_ROUND_MODE" else 4

        def set_mode(wave: Wave) -> None:
            wave.float_mode = wave.float_mode & ~(15 << shift) | value << shift

        return Operation(instruction, set_mode, "salu")
    return None


def _index_registers(instruction: Instruction) -> Operation:
    """Registers of vector instructions are counted from M0 on; which operands, four bits of the encoding say."""
    source = Operand(instruction.raw("ssrc0"), "b", 32, instruction.literal)
    get, which = scalar_getter(source), instruction.raw("ssrc1") & 15

    def run(wave: Wave) -> None:
        wave.s[wave.m0] = wave.s[wave.m0] & 0xFFFF0F00 | get(wave) & 0xFF | which << 12
        wave.indexing = True

    def spread(wave: Wave) -> None:
        wave.require_defined(source.registers, "the number of a register")
        # The bits that were not set do not matter to those who read a number in it.
        wave.undefined.pop(wave.m0, None)

    return Operation(instruction, run, "salu", source.registers, (), spread)


def _defines(writes: tuple[int, ...]) -> Run:
    def spread(wave: Wave) -> None:
        for register in writes:
            wave.undefined.pop(register, None)

    return spread


def _hardware_register(instruction: Instruction) -> Operation:
    """s_getreg and s_setreg: of the hardware's registers, only MODE has a meaning here."""
    code = instruction.number("simm16")
    register, offset, size = code & 63, code >> 6 & 31, (code >> 11 & 31) + 1
    mask = (1 << size) - 1
    destination = instruction.raw("sdst")
    if register != _HW_MODE:
        raise Unknown(f"hardware register {register}")
    if instruction.name == "S_GETREG_B32":

        def get(wave: Wave) -> None:
            wave.write_scalar(destination, wave.float_mode >> offset & mask, 32)

        return Operation(instruction, get, "salu", (), (destination,), _defines((destination,)))
    immediate = instruction.name == "S_SETREG_IMM32_B32"

    def put(wave: Wave) -> None:
        value = instruction.literal if immediate else wave.s[destination]
        if offset + size <= 8:
            wave.float_mode = wave.float_mode & ~(mask << offset) | (value & mask) << offset

    return Operation(instruction, put, "salu", () if immediate else (destination,))
