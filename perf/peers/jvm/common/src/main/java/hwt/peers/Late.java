package hwt.peers;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** How long after its deadline a task runs. */
final class Late {
    private static final int BATCH = 100;
    private static final long BATCH_NANOS = 5_000_000;
    private static final int QUANTILES = 1_001;

    private Late() {
    }

    static Figures measure(Peer peer, Options options) throws InterruptedException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            Deadlines deadlines = new Deadlines(options.count());
            SplitMix64 random = new SplitMix64(options.seed());
            long start = System.nanoTime();
            for (int id = 1; id <= options.count(); id++) {
                if (id % BATCH == 1) {
                    sleepUntil(start + id / BATCH * BATCH_NANOS);
                }
                long delayMicros = random.between(1_000, 21_000);
                deadlines.set(id, System.nanoTime() + 1_000 * delayMicros);
                timer.schedule(delayMicros, id, deadlines);
            }
            return figures(deadlines.awaitLateness());
        }
    }

    private static void sleepUntil(long nanoTime) {
        for (;;) {
            long rest = nanoTime - System.nanoTime();
            if (rest <= 0) {
                return;
            }
            LockSupport.parkNanos(rest);
        }
    }

    private static Figures figures(long[] lateness) {
        Arrays.sort(lateness);
        double[] quantiles = new double[QUANTILES];
        for (int i = 0; i < QUANTILES; i++) {
            quantiles[i] = lateness[(int) ((long) i * (lateness.length - 1) / (QUANTILES - 1))] / 1e3;
        }
        // The clock's unit is a nanosecond.
        long early = Arrays.stream(lateness).takeWhile(nanos -> nanos < -1).count();
        return new Figures().quantiles("late_us", quantiles).number("early", early);
    }

    /** Holds each timeout's deadline until it runs, then by how much it was late. */
    private static final class Deadlines implements Task {
        private final long[] nanos;
        private final CountDownLatch allRun = new CountDownLatch(1);
        private int left;

        Deadlines(int count) {
            nanos = new long[count];
            left = count;
        }

        void set(int id, long nanoTime) {
            nanos[id - 1] = nanoTime;
        }

        @Override
        public void run(long id) {
            int i = (int) id - 1;
            nanos[i] = System.nanoTime() - nanos[i];
            if (--left == 0) {
                allRun.countDown();
            }
        }

        long[] awaitLateness() throws InterruptedException {
            allRun.await();
            return nanos;
        }
    }
}
