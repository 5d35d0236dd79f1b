package hwt.peers;

/** Bytes of the live heap that one pending timeout takes. */
final class Memory {
    private static final long DELAY_MICROS = 3_600_000_000L;

    private Memory() {
    }

    static Figures measure(Peer peer, Options options) throws InterruptedException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            Counters counters = new Counters(0);
            Fence.await(timer, options.tickMs());
            long before = Heap.liveBytes();
            // The handles are dropped: the timer keeps its timeouts alive.
            for (int id = 1; id <= options.pending(); id++) {
                timer.schedule(DELAY_MICROS, id, counters);
            }
            Fence.await(timer, options.tickMs());
            long after = Heap.liveBytes();
            return new Figures().number("bytes_per_timeout", (double) (after - before) / options.pending());
        }
    }
}
