"""Hostile element types, devices and streams: objects that state what they are by attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import dlfield as dl
from adversary.values import Trap, integer, text

if TYPE_CHECKING:
    from adversary.case import Case


class Stated(Trap):
    """An object with attributes that act."""

    def __init__(self, case: Case, **attributes: Any) -> None:
        super().__init__(case)
        self.attributes = attributes

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__.get("attributes", {})
        if name not in attributes:
            raise AttributeError(name)
        self.case.act(f"attribute {name}")
        return self.case.true(attributes[name])

    def __hash__(self) -> int:
        self.case.act("__hash__")
        return 1

    def __eq__(self, other: object) -> Any:
        self.case.act("__eq__")
        return self.case.true(self is other)

    def __repr__(self) -> str:
        self.case.act("__repr__")
        found: str = self.case.true("Stated()")
        return found


def dtype(case: Case) -> Any:
    plain = case.rng.choice((case.dtype, "float64", np.float64, np.dtype("f8"), float, torch.float64, None))
    if case.rng.random() > 0.6 * case.hostility:
        return plain
    return case.rng.choice(
        (
            lambda: text(case, "float64"),
            lambda: Stated(case, dtype=np.dtype("f8")),
            lambda: Stated(case, name="float64", itemsize=8),
            lambda: type("Typed", (), {"dtype": np.dtype("f8")}),
            lambda: np.dtype((np.float64, (3,))),
            lambda: case.keep(["f8"]),
        )
    )()


def device(case: Case) -> Any:
    plain = case.rng.choice(("cpu", "cpu", (1, 0), dl.Device("cpu"), torch.device("cpu"), "cuda:0", None))
    if case.rng.random() > 0.6 * case.hostility:
        return plain
    return case.rng.choice(
        (
            lambda: text(case, "cpu"),
            lambda: (integer(case, 1), integer(case, 0)),
            lambda: Stated(case, type="cpu", index=integer(case, 0)),
            lambda: Stated(case, platform=text(case, "cpu"), id=integer(case, 0)),
        )
    )()


def stream(case: Case) -> Any:
    if case.rng.random() < 0.6:
        return None
    return case.rng.choice(
        (lambda: integer(case, -1), lambda: Stated(case, __cuda_stream__=lambda: (0, 0)), lambda: 1)
    )()
