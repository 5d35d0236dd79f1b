"""Tests docs/examples/python against the built C library.

usage: python_test.py SOURCE_ROOT; HWT_LIBRARY names the library
"""

import contextlib
import functools
import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/docs/examples/python")

import hashed_wheel_timer as hwt  # noqa: E402  pylint: disable=wrong-import-position

# At its end it makes a timer after the module has closed all timers, and collects an owner that closes its own.
ENDING = """
import atexit
@atexit.register
def late():
    try: hwt.Timer().add(0, again)
    except RuntimeError: print("refused")
import hashed_wheel_timer as hwt
class Owner:
    def __init__(self): self.itself, self.timer = self, hwt.Timer(tick=0.001)
    def __del__(self): self.timer.close()
def again(timer=(owner := Owner()).timer): timer.add(0, again)
again()
"""

# Each callable waits until the end of the program waits for it, and then interrupts that wait as Ctrl-C does.
INTERRUPTED = """
import _thread, atexit, time
atexit.register(lambda: print(len(hwt.OPEN), "open"))
import hashed_wheel_timer as hwt
timers = [hwt.Timer(tick=0.001) for _ in range(3)]
def interrupt(timer):
    while not (hwt.ENDED.is_set() and timer._calls): time.sleep(0.001)
    _thread.interrupt_main()
for timer in timers: timer.add(0, lambda timer=timer: interrupt(timer))
while any(timer._callables for timer in timers): time.sleep(0.001)
"""


def result_of(program):
    environment = {**os.environ, "PYTHONPATH": sys.path[0]}
    return subprocess.run([sys.executable, "-B", "-c", program], env=environment, stdout=-1, stderr=-1, timeout=60)


def together(functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Timers(unittest.TestCase):
    def test_a_callable_runs_once_and_not_early(self):
        ran, done = [], threading.Event()
        with hwt.Timer(tick=0.001) as timer:
            begun = time.monotonic()
            timer.add(0.02, lambda: (ran.append(time.monotonic()), done.set()))
            self.assertTrue(done.wait(60))
        self.assertEqual(len(ran), 1)
        self.assertGreaterEqual(ran[0], begun + 0.02)

    def test_cancel_answers_true_once(self):
        ran = []
        with hwt.Timer() as timer:
            timeout = timer.add(3600, lambda: ran.append(1))
            self.assertEqual(timer.pending(), 1)
            self.assertTrue(timer.cancel(timeout))
            self.assertFalse(timer.cancel(timeout))
            self.assertEqual(timer.pending(), 0)
        self.assertEqual(ran, [])

    def test_a_delay_beyond_the_clock_is_never_due(self):
        ran, done = [], threading.Event()
        with hwt.Timer(tick=0.001) as timer:
            timer.add(1e10, lambda: ran.append(1))
            timer.add(-1e10, done.set)
            self.assertTrue(done.wait(60))
            for wrong in (float("nan"), float("inf")):
                with self.assertRaises((ValueError, OverflowError)):
                    timer.add(wrong, done.set)
            self.assertEqual(timer.pending(), 1)
        self.assertEqual(ran, [])

    def test_close_ends_what_is_pending_and_frees_its_callables(self):
        ran, alive, timer = [], weakref.WeakSet(), hwt.Timer()
        for i in range(100):
            callable_ = functools.partial(ran.append, i)
            alive.add(callable_)
            timer.add(3600, callable_)
            del callable_
        self.assertEqual(len(alive), 100)
        timer.close()
        gc.collect()
        self.assertEqual(len(alive), 0)
        self.assertEqual(ran, [])
        timer.close()
        for call in (timer.pending, lambda: timer.add(0, int), lambda: timer.cancel((1, 1))):
            self.assertRaisesRegex(RuntimeError, "has been closed", call)

    def test_several_threads_may_close_during_other_calls(self):
        for _ in range(30):
            timer, begin = hwt.Timer(tick=0.001), threading.Barrier(4)

            def work(timer=timer, begin=begin):
                begin.wait()
                with contextlib.suppress(RuntimeError):
                    while True:
                        timer.cancel(timer.add(0, int))

            together([work, work, lambda: (begin.wait(), timer.close()), lambda: (begin.wait(), timer.close())])
            self.assertRaisesRegex(RuntimeError, "has been closed", timer.pending)

    def test_close_inside_a_callable_is_refused(self):
        done = threading.Event()
        with hwt.Timer(tick=0.001) as timer:
            timer.add(0, lambda: (self.assertRaises(RuntimeError, timer.close), done.set()))
            self.assertTrue(done.wait(10))

    def test_timers_end_with_the_program_and_none_begins_afterwards(self):
        ended = result_of(ENDING)
        self.assertEqual((ended.returncode, ended.stdout), (0, b"refused\n"), ended.stderr)

    def test_ctrl_c_at_the_end_of_the_program_leaves_no_timer_open(self):
        ended = result_of(INTERRUPTED)
        self.assertEqual(ended.stdout, b"0 open\n", ended.stderr)
        self.assertIn(b"KeyboardInterrupt", ended.stderr)

    def test_errors_name_the_value_and_the_range(self):
        with self.assertRaisesRegex(ValueError, r"tick_duration: 0 ns \(expected: "):
            hwt.Timer(tick=0)
        for number in (2**63, 2**64, 2**64 + 5, -(2**63) - 1):
            with self.assertRaisesRegex(ValueError, rf"max_pending: {number} \(expected: "):
                hwt.Timer(max_pending=number)
        with self.assertRaisesRegex(ValueError, r"tick in nanoseconds: 18446744073\d+ \(expected: "):
            hwt.Timer(tick=2**64 / 1e9)
        with hwt.Timer(max_pending=1) as timer:
            timer.add(3600, self.fail)
            with self.assertRaisesRegex(RuntimeError, "1 timeouts are pending already"):
                timer.add(3600, self.fail)

    def test_many_threads(self):
        ran, cancelled = [], []
        with hwt.Timer(tick=0.001) as timer:

            def work():
                for i in range(500):
                    timeout = timer.add(i % 3 * 0.0005, lambda: ran.append(1))
                    cancelled.append(timer.cancel(timeout))

            together([work] * 4)
        self.assertEqual(len(ran) + sum(cancelled), 2000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
