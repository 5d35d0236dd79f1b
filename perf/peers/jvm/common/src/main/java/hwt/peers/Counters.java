package hwt.peers;

import java.util.concurrent.CountDownLatch;

/**
 * Counts what has fired. Only the thread that runs the peer's tasks touches the fields; a latch that the same thread
 * opens later publishes them.
 */
final class Counters implements Task {
    private final long expected;
    private final CountDownLatch allFired = new CountDownLatch(1);
    private long fired;
    private long firedSum;

    /** Zero for a run in which nothing is to fire. */
    Counters(long expected) {
        this.expected = expected;
    }

    @Override
    public void run(long id) {
        firedSum += id;
        if (++fired == expected) {
            allFired.countDown();
        }
    }

    void awaitAll() throws InterruptedException {
        allFired.await();
    }

    long fired() {
        return fired;
    }

    long firedSum() {
        return firedSum;
    }
}
