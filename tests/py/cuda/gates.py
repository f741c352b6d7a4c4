"""Holds up a device until another Python thread has run: what waits for the device has to release the GIL."""

import ctypes
import faulthandler
import sys
import threading
from collections.abc import Callable
from typing import Any

from driver import LEGACY, Driver


class Gate:
    """Stops a stream until another Python thread has run."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.libc = ctypes.CDLL(None)
        self.semaphore = ctypes.create_string_buffer(64)
        self.libc.sem_init(self.semaphore, 0, 0)

    def stop(self, stream: int = LEGACY) -> None:
        function = ctypes.cast(self.libc.sem_wait, ctypes.c_void_p)
        with self.driver.on(0):
            self.driver.call("cuLaunchHostFunc", ctypes.c_void_p(stream), function, self.semaphore)

    def opened_during(self, wait: Callable[[], Any]) -> None:
        """Run `wait`, and end the process if no other thread can run meanwhile."""
        begun = threading.Lock()
        begun.acquire()

        def open_it() -> None:
            with begun:
                self.libc.sem_post(self.semaphore)

        thread = threading.Thread(target=open_it)
        thread.start()
        # From here on no other thread runs unless this one releases the GIL.
        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        faulthandler.dump_traceback_later(30, exit=True)
        try:
            begun.release()
            wait()
        finally:
            faulthandler.cancel_dump_traceback_later()
            sys.setswitchinterval(before)
        thread.join()
