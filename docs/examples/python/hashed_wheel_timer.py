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
import itertools
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

# Set when the program ends. Soon after it, Python ends each thread that enters it, so no timer may run a callable.
ENDED = threading.Event()


@atexit.register
def close_all():
    ENDED.set()
    errors = []
    # Several times, because Ctrl-C or another signal may raise an exception in a close(), and leave the timer open.
    for timer in list(OPEN) * 3:
        try:
            timer.close()
        except BaseException as error:
            errors.append(error)
    if errors:
        raise errors[0]


def renew_locks():
    """In the child of a fork(), where the threads that held the locks do not exist."""
    for timer in OPEN:
        timer._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_locks)


class Timer:
    """A timer with a worker thread. close() ends it, as does the end of a with statement. The end of the program closes
    all timers, and waits for callables that run. Any thread may call any method, also inside a callable, except
    close(). After close(), the other methods raise RuntimeError.
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
        self._numbers = itertools.count(1)
        # The calls in progress. After close(), the last of them destroys the timer of the library.
        self._calls = 0
        self._closed = False
        # For the calls. A signal handler or a destructor may interrupt a method, and call another one.
        self._lock = threading.RLock()
        self._callback = CALLBACK(self._run)
        OPEN.add(self)
        # After OPEN.add(): if the program ends in between, close_all() finds the timer.
        if ENDED.is_set():
            self.close()
            raise RuntimeError("a timer cannot be made while the program ends")

    def add(self, delay, callable):
        """Runs callable() once, `delay` seconds from now or up to a tick later. Returns the timeout."""
        nanoseconds = min(max(round(delay * 1e9), 0), 2**63 - 1)  # ctypes would wrap it around
        self._begin_call()
        try:
            number = next(self._numbers)
            self._callables[number] = callable
            timeout = LIBRARY.hwt_add(self._timer, nanoseconds, self._callback, number)
            if timeout == 0:
                error = last_error()
                self._take(number)
                raise RuntimeError(error)
            return timeout, number
        finally:
            self._end_call()

    def cancel(self, timeout):
        """Returns whether this call has cancelled the timeout, so that its callable never runs. Waits while it runs on
        another thread, so hold no lock that the callable takes.
        """
        timeout, number = timeout
        self._begin_call()
        try:
            cancelled = LIBRARY.hwt_cancel_and_wait(self._timer, timeout) == 0
            if cancelled:
                self._take(number)
            return cancelled
        finally:
            self._end_call()

    def pending(self):
        """Returns the number of pending timeouts."""
        self._begin_call()
        try:
            number = LIBRARY.hwt_pending(self._timer)
            if number < 0:
                raise RuntimeError(last_error())
            return number
        finally:
            self._end_call()

    def close(self):
        """Cancels all timeouts. Waits for a callable that runs, so hold no lock that a callable takes. Raises
        RuntimeError inside a callable. A second call does nothing.
        """
        if not self._try_begin_call():
            return
        try:
            if LIBRARY.hwt_stop(self._timer, None, None) != 0:
                raise RuntimeError(last_error())
            # No callable runs any more. Those that are left go when this method returns, without the lock.
            callables, self._callables = self._callables, {}
            self._closed = True
            OPEN.discard(self)
        finally:
            self._end_call()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _try_begin_call(self):
        with self._lock:
            self._calls += not self._closed
            return not self._closed

    def _begin_call(self):
        if not self._try_begin_call():
            raise RuntimeError("the timer has been closed")

    def _end_call(self):
        with self._lock:
            # In this order, so that a close() that interrupts this does not destroy the timer twice. It may leak it.
            is_last = self._closed and self._calls == 1
            self._calls -= 1
        if is_last:
            LIBRARY.hwt_destroy(self._timer)

    def _run(self, number):
        self._take(number)()

    def _take(self, number):
        """Returns the callable; None if close() has taken it."""
        return self._callables.pop(number, None)


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
