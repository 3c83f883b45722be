"""Properties that are made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as once
else:

    class once:
        """As `functools.cached_property` is from Python 3.12 on. Before, it has one lock for all objects: a process that is
        forked while another thread holds it waits for ever. Two threads may both make it; the first one's counts."""

        def __init__(self, make: Any) -> None:
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._make(instance))


__all__ = ["once"]
