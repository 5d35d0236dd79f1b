package hwt.peers;

import java.util.Set;
import java.util.function.IntFunction;

/**
 * A timer library under measurement.
 *
 * @param library a class of it
 * @param threads names of its own threads, 15 characters at most: the kernel keeps no more
 * @param note what a reader of the figures has to know, or ""
 * @param start starts a fresh timer with a tick in milliseconds
 */
record Peer(Class<?> library, Set<String> threads, String note, IntFunction<Timer> start) {
    static final int BUCKETS = 512;

    /** What a timeout does when it expires. A peer's task captures the id and a reference to this. */
    interface Task {
        void run(long id);
    }

    /** A started timer. */
    interface Timer extends AutoCloseable {
        /** Schedules a timeout that runs {@code task} with {@code id}. Returns the peer's own handle. */
        Object schedule(long delayMicros, long id, Task task);

        /** Returns whether the cancel has won, so that the task never runs. */
        boolean cancel(Object handle);

        /** Puts a pending timeout off to {@code delayMicros} from now. Returns the handle to use from now on. */
        default Object putOff(Object handle, long delayMicros, long id, Task task) {
            cancel(handle);
            return schedule(delayMicros, id, task);
        }

        @Override
        void close();
    }

    /** It stands in the name of the jar: "netty-common-4.2.20.Final.jar". */
    String version() {
        String jar = library.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceFirst(".*?-(\\d[^/]*)\\.jar$", "$1");
    }
}
