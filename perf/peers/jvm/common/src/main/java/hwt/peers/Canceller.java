package hwt.peers;

import java.util.List;

/** Counts one thread's cancels that have won. */
final class Canceller {
    private final PeerTimer timer;
    private long cancelled;
    private long cancelledSum;

    Canceller(PeerTimer timer) {
        this.timer = timer;
    }

    void cancel(Object handle, long id) {
        if (timer.cancel(handle)) {
            cancelled++;
            cancelledSum += id;
        }
    }

    static Figures figures(long scheduled, Counters counters, List<Canceller> cancellers) {
        return new Figures()
                .number("scheduled", scheduled)
                .number("fired", counters.fired())
                .sum("fired_sum", counters.firedSum())
                .number("cancelled", cancellers.stream().mapToLong(c -> c.cancelled).sum())
                .sum("cancelled_sum", cancellers.stream().mapToLong(c -> c.cancelledSum).sum());
    }
}
