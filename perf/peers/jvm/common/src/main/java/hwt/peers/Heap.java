package hwt.peers;

/** The live heap. */
final class Heap {
    private static final int MOST_COLLECTIONS = 10;
    private static final long STABLE_BYTES = 64 << 10;

    private Heap() {
    }

    /** Bytes in use after full collections, repeated until they find nothing more to free. */
    static long liveBytes() {
        long before = collect();
        for (int i = 1; i < MOST_COLLECTIONS; i++) {
            long after = collect();
            if (Math.abs(before - after) < STABLE_BYTES) {
                return after;
            }
            before = after;
        }
        return before;
    }

    private static long collect() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
