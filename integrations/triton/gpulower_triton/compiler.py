"""What Triton imports as a backend: one for no target, whose import has the stages of Triton's own backends replaced."""

from typing import Any, NoReturn

from triton import knobs
from triton.backends.compiler import BaseBackend, GPUTarget

from . import chosen


class NoBackend(BaseBackend):
    """One that supports no target: the stages of Triton's own are replaced in their place."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """None: there must be one backend for each target."""
        return False

    def _none(self, *_: Any) -> NoReturn:
        raise NotImplementedError("gpulower replaces stages of Triton's own backends, and is none itself")

    hash = parse_options = add_stages = load_dialects = get_module_map = _none


if chosen():
    from .stages import install

    install(knobs)
