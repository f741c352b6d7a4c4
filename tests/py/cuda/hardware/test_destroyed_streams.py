"""Streams that are destroyed while fields live: their handles are used only during the calls that brought them.

A driver crashes at every call with the handle of a destroyed stream, and so does the test double.
"""

import pytest

import stream_programs as program
from programs import run
from stream_programs import KINDS, ORDERS, SOURCES

THREAD_ORDERS = ["stream capsule field", "capsule stream field", "stream field capsule"]
finished = pytest.mark.parametrize("finish", [True, False], ids=["finished", "pending"])


@finished
@pytest.mark.parametrize("order", ORDERS)
def test_export(order: str, finish: bool) -> None:
    run(program.exported, order, finish)


def test_exports_to_many_streams() -> None:
    run(program.exported_again)


@pytest.mark.parametrize("drop_source_first", [True, False], ids=["source first", "source last"])
@pytest.mark.parametrize("source", SOURCES)
def test_import(source: str, drop_source_first: bool) -> None:
    run(program.imported, source, drop_source_first)


def test_import_from_a_stream_that_goes() -> None:
    run(program.imported_from_a_stream_that_goes)


@pytest.mark.parametrize("kind", KINDS)
def test_used_within_a_block(kind: str) -> None:
    run(program.used_within, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_dropped_after_a_block(kind: str) -> None:
    run(program.dropped_after, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_allocated_within_a_block(kind: str) -> None:
    run(program.allocated_within, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_allocated_on_a_stream(kind: str) -> None:
    run(program.allocated_on, kind)


@pytest.mark.parametrize("order", THREAD_ORDERS)
def test_destroyed_by_another_thread(order: str) -> None:
    run(program.destroyed_by_another_thread, order)


def test_ten_thousand_streams() -> None:
    run(program.many_streams, 10_000)


def test_two_threads() -> None:
    run(program.two_threads)


@finished
def test_exit_with_living_fields(finish: bool) -> None:
    run(program.exit_with_living_fields, finish, ends=False)


def test_exit_within_a_block() -> None:
    run(program.exit_within_a_block, ends=False)
