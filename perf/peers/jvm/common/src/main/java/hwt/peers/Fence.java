package hwt.peers;

import java.util.concurrent.CountDownLatch;

/**
 * Waits until the timer has taken over whatever was scheduled before. The peers hand timeouts and tasks over in the
 * order they came, so a timeout of two ticks that has run has all earlier ones before it. This also publishes the
 * counters.
 */
final class Fence {
    private Fence() {
    }

    static void await(PeerTimer timer, int tickMs) throws InterruptedException {
        CountDownLatch passed = new CountDownLatch(1);
        timer.schedule(2_000L * tickMs, 0, id -> passed.countDown());
        passed.await();
    }
}
