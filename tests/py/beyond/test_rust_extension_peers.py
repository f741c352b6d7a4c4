"""The extension with other crates: borrows that it shares with rust-numpy, and arrays that dlpark takes."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases, run_python

rx = pytest.importorskip("rust_extension")
needs_peers = pytest.mark.skipif(not hasattr(rx, "mixed"), reason="built without the feature peers")

# Which of the two crates borrows an array first: its list of borrows is the one that both use.
FIRST = {
    "dlfield": "rx.sum(np.ones(1))",
    "rust-numpy": "rx.peers.ndim(np.ones(1))",
    "neither": "",
}

PRELUDE = """
import gc, threading, warnings, weakref
import numpy as np
import dlfield as dl
import rust_extension as rx
warnings.simplefilter("ignore")
mixed = rx.mixed
x, y = np.zeros(8), np.zeros((2, 4))

def refused(call, *arrays):
    try:
        call(*arrays)
    except (TypeError, RuntimeError) as error:
        # rust-numpy's error is a RuntimeError and names no argument.
        return "\\n".join([str(error), *getattr(error, "__notes__", ())])
    raise AssertionError(f"{call} was not refused")

def in_thread(call, *arguments):
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()

def hold(borrow, array):
    # Keeps the array borrowed by a call in another thread until the returned function is called.
    inside, end = threading.Event(), threading.Event()

    def wait():
        inside.set()
        end.wait()

    def finish():
        end.set()
        thread.join()

    thread = threading.Thread(target=borrow, args=(array, wait))
    thread.start()
    inside.wait()
    return finish
"""

BORROWS = {
    "one array for both, of which one writes": """
        for name, argument in [
            ("out_readwrite", None), ("out_readonly", None), ("in_readwrite", None),
            ("readwrite_out", "_out"), ("readonly_out", "_out"), ("readwrite_in", "_inp"),
        ]:
            call = getattr(mixed, name)
            for arrays in [(x, x), (x[2:6], x), (x[::2], x[::-1]), (x, x[7:])]:
                message = refused(call, *arrays)
                assert "borrow" in message, message
                if argument is not None:
                    assert "PyReadonlyArray or PyReadwriteArray of rust-numpy" in message, message
                    assert repr(argument) in message, message
            # Nothing is left borrowed, and arrays that do not overlap are taken.
            for arrays in [(x, x.copy()), (x[:4], x[4:]), (x[::2], x[1::2]), (x[:0], x)]:
                call(*arrays)
    """,
    "one array that both read": """
        mixed.in_readonly(x, x)
        mixed.in_readonly(x[1:], x)
        mixed.out_readwrite(x, x.copy())
    """,
    "for as long as the argument lives": """
        def by_numpy():
            refused(mixed.readonly_out, x, np.zeros(1))
            refused(mixed.readwrite_out, x[:1], np.zeros(1))
            return 5
        assert mixed.with_out(x, by_numpy) == 5
        assert mixed.with_in(x, lambda: refused(mixed.readwrite_out, x, np.zeros(1)))
        assert mixed.with_in(x, lambda: mixed.in_readonly(x, x)) is None
        assert mixed.with_readwrite(y, lambda: refused(rx.sum, y[0]))
        assert mixed.with_readonly([y, y, y[:, 1:], y], lambda: rx.sum(y)) == 0.0
        assert mixed.with_readonly([y, y[1:], y], lambda: refused(mixed.forget, y[1]))
        mixed.out_readwrite(x, y[0])
        mixed.out_readwrite(y[0], x)
    """,
    "interleaved arrays": """
        cube = np.zeros((8, 8, 8))
        low, high = cube[..., :4], cube[..., 4:]
        for _ in range(2):
            rx.add_scaled(1.0, low, high)
            rx.laplacian(low, high)
        flat = np.zeros((4, 4))
        def inside():
            # What this extension writes is refused to rust-numpy, and nothing of another array.
            refused(mixed.with_readonly, [flat[:, 2:]], lambda: None)
            mixed.with_readonly([cube], lambda: None)
        mixed.with_views(flat[:, :2], flat[:, 2:], inside)
        mixed.with_readwrite(flat, lambda: None)
        # rust-numpy has a part: the rest is entered as before.
        mixed.with_readonly([flat[:1]], lambda: mixed.with_views(flat[1:, :2], flat[1:, 2:], lambda: None))
        mixed.with_readonly([flat[1:2, 3:]], lambda: refused(mixed.with_views, flat[:, :2], flat[:, 2:], lambda: None))
        mixed.with_readwrite(flat, lambda: None)
    """,
    "a copied argument, during the copy": """
        assert mixed.copy_readwrite(x, x) is True
        refused(mixed.copy_readwrite, np.zeros(8, "float32"), np.zeros(8, "float32"))
    """,
    "an array whose shape is set while it is borrowed": """
        z = np.zeros(8)
        def set_shape():
            x.shape = (2, 4)
            x.strides = (8, 16)
        def set_dtype():
            z.dtype = np.dtype("int32")
        mixed.with_out(x, set_shape)
        mixed.with_in(z, set_dtype)
        mixed.out_readwrite(np.zeros(8), np.zeros(8))
        assert rx.sum(x) == 0.0
    """,
    "many arrays": """
        whole = np.zeros(2000)
        assert mixed.with_readonly([whole[i : i + 1] for i in range(2000)], lambda: rx.sum(whole)) == 0.0
        mixed.out_readwrite(whole, np.zeros(1))
    """,
    "an array that changes while a second extension has it": """
        import importlib.util, shutil, sys, tempfile
        # In an installed extension the library is inside a package.
        library = sys.modules.get("rust_extension.rust_extension", rx).__file__
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(library, folder)
            spec = importlib.util.spec_from_file_location("rust_extension", path)
            other = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(other)
        other.mixed.with_out(x, lambda: x.resize((2, 4), refcheck=False))
        x.resize(8, refcheck=False)
        mixed.with_out(x, lambda: None)
        other.mixed.with_out(x, lambda: None)
    """,
}


# Where rust-numpy borrows from dlfield's list: its own one has empty arrays too, and no tensors.
OF_DLFIELD = {
    "tensors": """
        tensor = dl.zeros(8)
        array = np.asarray(tensor)
        assert "borrow" in mixed.with_out(tensor, lambda: refused(mixed.readonly_out, array, np.zeros(1)))
        assert "rust-numpy" in mixed.with_readwrite(array, lambda: refused(rx.sum, tensor))
        mixed.out_readwrite(tensor, np.zeros(8))
    """,
    "arrays of any dimensions": """
        empty, scalar, deep = np.zeros((3, 0)), np.zeros(()), np.zeros((1,) * 63 + (2,))
        broadcast = np.broadcast_to(np.zeros(1), (4, 4))
        for array in (empty, scalar, deep, broadcast, deep[..., ::-1]):
            mixed.with_readonly([array, array], lambda: None)
        for array in (scalar, deep):
            mixed.with_readwrite(array, lambda: refused(rx.sum, array))
            assert rx.sum(array) == 0.0
        mixed.with_readwrite(empty, lambda: rx.sum(empty))
        refused(mixed.with_readwrite, broadcast, lambda: None)
    """,
}


@needs_peers
@pytest.mark.parametrize("first", FIRST)
def test_what_one_crate_writes_the_other_does_not_borrow(first: str) -> None:
    run_cases(PRELUDE + FIRST[first], BORROWS | (OF_DLFIELD if first == "dlfield" else {}))


# Arguments that end in another thread than others of the same array, or never.
LEFT = {
    "forgotten": """
        for forget, array in [(mixed.forget, x), (mixed.forget_readwrite, y[0])]:
            in_thread(forget, array)
            refused(rx.sum, array[1:2])
            refused(mixed.readonly_out, array, np.zeros(1))
        rx.sum(y[1])
        mixed.out_readwrite(y[1, :2], y[1, 2:])
    """,
    "the array of a forgotten argument": """
        class Array(np.ndarray):
            pass
        array = np.ones(4).view(Array)
        gone = weakref.ref(array)
        mixed.forget(array)
        del array
        gc.collect()
        assert gone() is not None
    """,
    "threads that a forked child does not have": """
        finish, z = hold(mixed.with_out, x), np.zeros(4)
        def child():
            pid = os.fork()
            if pid == 0:
                refused(rx.sum, x)
                refused(rx.sum, z)
                os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert mixed.with_out(z, child) == 0
        rx.sum(z)
        finish()
        rx.sum(x)
    """,
    "an array that two threads read, of which one ends": """
        finish = hold(mixed.with_readonly, [x])
        def check():
            finish()
            return refused(mixed.with_out, x, lambda: None)
        assert mixed.with_readonly([x], check)
        mixed.with_out(x, lambda: None)
    """,
}


@needs_peers
def test_arguments_that_are_not_dropped_stay_borrowed() -> None:
    run_cases(PRELUDE + FIRST["dlfield"], LEFT)


@needs_peers
def test_an_attribute_of_that_name_that_is_no_table_is_ignored() -> None:
    prelude = """
        import numpy._core.multiarray as m
        from datetime import datetime_CAPI

        def borrow(planted):
            m._RUST_NUMPY_BORROW_CHECKING_API = planted
            import rust_extension
            assert rust_extension.sum(m.array([1.0, 1.0, 1.0])) == 3.0
    """
    run_cases(prelude, {planted: f"borrow({planted})" for planted in ("1", "object()", "datetime_CAPI")})


def test_arguments_of_other_libraries_need_no_numpy() -> None:
    run_python("""
        import sys
        import rust_extension as rx
        import array
        assert rx.ndim(array.array("d", [1.0])) == 1
    """)


@needs_peers
def test_dlpark_imports_a_tensor() -> None:
    assert rx.mixed.by_dlpark(dl.zeros((3, 4))) == ([3, 4], False)


@needs_peers
def test_dlpark_imports_the_capsule_of_a_read_only_tensor() -> None:
    field = dl.zeros((3, 4)).as_readonly()
    # dlpark asks the C exchange table, whose users may write to the memory; the error says what to pass.
    with pytest.raises(BufferError, match=r"obj.copy\(\), or, .* obj.__dlpack__\(max_version=\(1, 0\)\)"):
        rx.mixed.by_dlpark(field)
    assert rx.mixed.by_dlpark(field.__dlpack__(max_version=(1, 0))) == ([3, 4], True)
    assert rx.mixed.by_dlpark(field.copy()) == ([3, 4], False)


ARRAYS: list[tuple[Any, bool]] = [
    (dl.zeros((3, 4)), False),
    (dl.zeros((3, 4)).as_readonly(), True),
    (np.zeros((3, 4)), False),
    (np.frombuffer(bytes(96)).reshape(3, 4), True),
    (memoryview(bytes(12)).cast("B", (3, 4)), True),
]


@needs_peers
@pytest.mark.parametrize(("array", "is_readonly"), ARRAYS)
def test_an_argument_becomes_a_struct_of_dlpark(array: Any, is_readonly: bool) -> None:
    assert rx.mixed.for_dlpark(array) == ([3, 4], is_readonly)
