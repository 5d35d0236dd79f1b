package hwt.peers;

/** The random numbers that all runners share. */
final class SplitMix64 {
    private long state;

    SplitMix64(long seed) {
        state = seed;
    }

    long next() {
        state += 0x9E3779B97F4A7C15L;
        long z = state;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    /** A number from 0 to {@code bound} - 1. */
    long below(long bound) {
        return Long.remainderUnsigned(next(), bound);
    }

    /** A number from {@code lo} to {@code hi}. */
    long between(long lo, long hi) {
        return lo + below(hi - lo + 1);
    }
}
