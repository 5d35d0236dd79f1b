"""Tests docs/examples/python against the built C library.

usage: python_test.py SOURCE_ROOT; HWT_LIBRARY names the library
"""

import gc
import sys
import threading
import time
import unittest
import weakref

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/docs/examples/python")

import hashed_wheel_timer as hwt  # noqa: E402  pylint: disable=wrong-import-position


class Timers(unittest.TestCase):
    def test_a_callable_runs_once_and_not_early(self):
        ran = []
        done = threading.Event()
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
        ran = []
        with hwt.Timer(tick=0.001) as timer:
            timer.add(1e10, lambda: ran.append(1))
            done = threading.Event()
            timer.add(-1e10, done.set)
            self.assertTrue(done.wait(60))
            for wrong in (float("nan"), float("inf")):
                with self.assertRaises((ValueError, OverflowError)):
                    timer.add(wrong, done.set)
            self.assertEqual(timer.pending(), 1)
        self.assertEqual(ran, [])

    def test_close_ends_what_is_pending_and_frees_its_callables(self):
        class Callable:
            ran = False

            def __call__(self):
                Callable.ran = True

        alive = weakref.WeakSet()
        timer = hwt.Timer()
        for _ in range(100):
            callable_ = Callable()
            alive.add(callable_)
            timer.add(3600, callable_)
            del callable_
        self.assertEqual(len(alive), 100)
        timer.close()
        gc.collect()
        self.assertEqual(len(alive), 0)
        self.assertFalse(Callable.ran)
        timer.close()

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
        ran = []
        with hwt.Timer(tick=0.001) as timer:
            cancelled = []

            def work():
                for i in range(500):
                    timeout = timer.add(i % 3 * 0.0005, lambda: ran.append(1))
                    cancelled.append(timer.cancel(timeout))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(ran) + sum(cancelled), 2000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
