"""The interpreter ends while daemon threads are inside dlfield, and a process forks while they are.

Each case runs many times, in forks of a process that has imported everything and has one thread.
"""

import sys

import pytest

from childproc import run_python

PRELUDE = """
import os, sys, threading, time, random, signal, warnings
import numpy as np
import dlfield as dl
from dlpack_structs import release, take

warnings.simplefilter("ignore")
# 8 MB: some milliseconds without the GIL, in several threads.
LARGE = np.arange(2.0**20).reshape(64, 128, 128)
SMALL = np.ones((3, 4))

class Producer:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        return SMALL.__dlpack__(**keywords)

class Hooked:
    def acquire(self):
        pass

    @property
    def __gt_data_interface__(self):
        hooks = {"acquire": self.acquire, "release": self.acquire}
        return {None: lambda: {**SMALL.__array_interface__, **hooks}}

def copy_large():
    field = dl.zeros(LARGE.shape, backend="F")
    field[...] = LARGE
    field.copy()

def fill_large():
    dl.full(LARGE.shape, 2.5)

def export():
    field = dl.ones((30, 40))
    np.from_dlpack(field[1:])
    release(take(field.__dlpack__(max_version=(1, 3))))
    memoryview(field).tobytes()

def import_and_drop():
    dl.from_dlpack(SMALL)
    dl.describe(SMALL)
    dl.from_array(SMALL)

def call_python():
    dl.from_dlpack(Producer())
    dl.from_dlpack(Hooked())
    dl.describe(Hooked())

PLAIN = dl.Signature(a=dl.FieldSpec("float64", "IJ"), b=dl.FieldSpec("float64", "IJ", access="w"))

def bind():
    with PLAIN.bind(a=Hooked(), b=np.zeros((3, 4))) as fields:
        fields.a.ptr

def share():
    dl.from_array(SMALL).share()

def report():
    dl.memory_report()

def convert():
    field = dl.ones((30, 40))
    field.astype("float32").fill(2)

USES = [copy_large, fill_large, export, import_and_drop, call_python, bind, convert, share, report]
# A child of `fork` waits for ever for a module that another thread of its parent was importing: here, by its first use.
for use in USES:
    use()

def start(use):
    def work():
        while True:
            use()
    threading.Thread(target=work, daemon=True).start()

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
# What runs no code of Python inside of a call, and what does.
PLAIN_USES = ["copy_large", "fill_large", "export", "import_and_drop", "report"]
CALLING_PYTHON = ["call_python", "bind", "convert", "share"]

# How the main thread ends: at once, while it is in dlfield itself, and with objects that are dropped last.
ENDINGS = """
kept = []

def at_once():
    pass

def after_a_copy():
    copy_large()

def with_objects():
    kept.extend([dl.ones(9), dl.ones(9).__dlpack__(), dl.from_dlpack(Hooked()), np.asarray(dl.ones(9))])
    kept.append(kept)

ENDINGS = [at_once, after_a_copy, with_objects]
"""


# Before 3.14 Python ends such a thread by unwinding its stack, also where Rust has called Python code. Rust cannot let
# that through, and the process aborts: https://github.com/python/cpython/issues/87135
unwinds = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="before 3.14 Python unwinds daemon threads, also through Rust"
)


@pytest.mark.parametrize("use", [*PLAIN_USES, *(pytest.param(use, marks=unwinds) for use in CALLING_PYTHON)])
def test_the_interpreter_ends_while_threads_are_in_dlfield(use: str) -> None:
    """Daemon threads are stopped where they take the GIL again, which may be at the end of a copy."""
    output = run_python(
        PRELUDE
        + ENDINGS
        + f"""
random.seed(1)
for turn in range(15):
    child = os.fork()
    if not child:
        signal.alarm(120)
        for _ in range(3):
            start({use})
        time.sleep(random.random() * 0.01)
        ENDINGS[turn % 3]()
        sys.exit(0)
    status = ended(child)
    if status:
        print(f"turn {{turn}}: exit status {{status}}")
"""
    )
    assert output == "", output


@pytest.mark.parametrize("use", [*PLAIN_USES, *CALLING_PYTHON])
def test_a_fork_while_another_thread_is_in_dlfield(use: str) -> None:
    """The child has none of the other threads, whose locks stay locked in it. It copies and ends all the same."""
    output = run_python(
        PRELUDE
        + f"""
random.seed(2)
for _ in range(2):
    start({use})
kept = dl.from_array(LARGE)
for turn in range(10):
    time.sleep(random.random() * 0.01)
    child = os.fork()
    if not child:
        signal.alarm(120)
        for use in USES:
            use()
        assert (dl.from_array(LARGE, backend="F").to_numpy() == LARGE).all()
        assert (kept.to_numpy() == LARGE).all()
        # The other way out does not end the interpreter.
        os._exit(0) if turn % 2 else sys.exit(0)
    status = ended(child)
    if status:
        print(f"turn {{turn}}: exit status {{status}}")
sys.stdout.flush()
os._exit(0)
"""
    )
    assert output == "", output
