package hwt.peers;

/** Ids of timeouts: 1, 2, 3 ... of each thread, with the thread in the upper bits. */
final class Ids {
    private Ids() {
    }

    /** The id before thread {@code t}'s first. */
    static long base(int t) {
        return (long) t << 40;
    }
}
