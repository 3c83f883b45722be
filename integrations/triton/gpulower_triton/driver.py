"""Triton wants a driver of every backend. GPUs are driven by Triton's own."""

from typing import Any, NoReturn

from triton.backends.driver import DriverBase


class NoDriver(DriverBase):
    """One that is never active."""

    @classmethod
    def is_active(cls) -> bool:
        """Never: Triton's own drivers launch what was compiled."""
        return False

    def _none(self, *_: Any) -> NoReturn:
        raise NotImplementedError("gpulower has no driver for Triton: its own launches what gpulower compiled")

    map_python_to_cpp_type = get_current_target = get_active_torch_device = get_benchmarker = _none
