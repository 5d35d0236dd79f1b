"""Timeouts for requests, by ctypes on the C library of hashed_wheel_timer.

    timer = Timer(tick=0.001)
    timeout = timer.add(0.25, lambda: print("too late"))
    if timer.cancel(timeout):
        print("in time")

HWT_LIBRARY names the file of the library. Without it the system finds libhashed_wheel_timer_c.
"""

import atexit
import ctypes
import ctypes.util
import os
import threading
import time

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EXECUTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, CALLBACK, ctypes.c_void_p)


class Options(ctypes.Structure):
    """hwt_options."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("tick_ns", ctypes.c_int64),
        ("ticks_per_wheel", ctypes.c_uint32),
        ("max_pending", ctypes.c_int64),
        ("slow_task_ns", ctypes.c_int64),
        ("executor", EXECUTOR),
        ("executor_context", ctypes.c_void_p),
        ("exact_clock", ctypes.c_int),
        ("start_ns", ctypes.c_int64),
    ]


def load():
    path = os.environ.get("HWT_LIBRARY") or ctypes.util.find_library("hashed_wheel_timer_c")
    if path is None:
        raise OSError("libhashed_wheel_timer_c was not found (expected: it is installed, or HWT_LIBRARY names its file)")
    library = ctypes.CDLL(path)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.hwt_options_init_sized.argtypes = [ctypes.POINTER(Options), ctypes.c_size_t]
    library.hwt_create.argtypes = [ctypes.POINTER(Options), ctypes.POINTER(pointer)]
    library.hwt_add.argtypes = [pointer, number, CALLBACK, pointer]
    library.hwt_add.restype = ctypes.c_uint64
    library.hwt_cancel_and_wait.argtypes = [pointer, ctypes.c_uint64]
    library.hwt_stop.argtypes = [pointer, pointer, pointer]
    library.hwt_destroy.argtypes = [pointer]
    library.hwt_pending.argtypes = [pointer]
    library.hwt_pending.restype = number
    library.hwt_last_error.restype = ctypes.c_char_p
    return library


def int64(name, value):
    """Returns the number as ctypes takes it, which would wrap a larger one around."""
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name}: {value} (expected: -2^63 .. 2^63 - 1)")
    return value


LIBRARY = load()

# The timers that have not been closed. Their threads call into Python, so Python must not free them.
OPEN = set()


@atexit.register
def stop_all():
    for timer in list(OPEN):
        LIBRARY.hwt_stop(timer._timer, None, None)


class Timer:
    """A timer with a worker thread. close() ends it, as does the end of a with statement. The end of the program stops it,
    and waits for a callable that runs.
    """

    def __init__(self, tick=0.01, max_pending=-1):
        options = Options()
        LIBRARY.hwt_options_init_sized(options, ctypes.sizeof(options))
        options.tick_ns = int64("tick in nanoseconds", round(tick * 1e9))
        options.max_pending = int64("max_pending", max_pending)
        self._timer = ctypes.c_void_p()
        if LIBRARY.hwt_create(options, self._timer) != 0:
            raise ValueError(last_error())
        # The callables by their number, which the library passes on. A callable leaves when it runs or is cancelled.
        self._callables = {}
        self._numbers = 0
        self._lock = threading.Lock()
        self._callback = CALLBACK(self._run)
        OPEN.add(self)

    def add(self, delay, callable):
        """Runs callable() once, `delay` seconds from now or up to a tick later. Returns the timeout."""
        nanoseconds = min(max(round(delay * 1e9), 0), 2**63 - 1)  # ctypes would wrap it around
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._callables[number] = callable
        timeout = LIBRARY.hwt_add(self._timer, nanoseconds, self._callback, number)
        if timeout == 0:
            error = last_error()
            self._take(number)
            raise RuntimeError(error)
        return timeout, number

    def cancel(self, timeout):
        """Returns whether this call has cancelled the timeout, so that its callable never runs. Waits while it runs on
        another thread, so hold no lock that the callable takes.
        """
        timeout, number = timeout
        cancelled = LIBRARY.hwt_cancel_and_wait(self._timer, timeout) == 0
        if cancelled:
            self._take(number)
        return cancelled

    def pending(self):
        """Returns the number of pending timeouts."""
        return LIBRARY.hwt_pending(self._timer)

    def close(self):
        """Cancels all timeouts. Waits for a callable that runs."""
        if self in OPEN:
            LIBRARY.hwt_stop(self._timer, None, None)
            OPEN.discard(self)
            LIBRARY.hwt_destroy(self._timer)
            self._timer = ctypes.c_void_p()
            self._callables.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self, number):
        self._take(number)()

    def _take(self, number):
        with self._lock:
            return self._callables.pop(number)


def last_error():
    return LIBRARY.hwt_last_error().decode()


def main():
    """Two requests: one is answered in time."""
    with Timer(tick=0.001) as timer:
        requests = {name: timer.add(0.05, lambda name=name: print(f"{name}: too late")) for name in ("first", "second")}
        if timer.cancel(requests["first"]):
            print("first: answered in time")
        while timer.pending():
            time.sleep(0.001)


if __name__ == "__main__":
    main()
