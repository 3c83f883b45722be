"""Why an execution stops before the end."""


class Trap(Exception):
    """The program did something that no correct program does, or something that this executor does not know."""


class Unknown(Trap):
    """An instruction, an operand or a relocation that is not implemented: nothing is ever skipped."""


class NoEntry(Unknown):
    """A bundle without code for the chip."""
