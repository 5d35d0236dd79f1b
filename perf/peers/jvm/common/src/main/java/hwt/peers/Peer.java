package hwt.peers;

import java.util.Set;

/** A timer library under measurement. */
public interface Peer {
    String name();

    /** Starts a fresh timer. */
    PeerTimer start(int tickMs);

    /** Names of the timer's own threads, 15 characters at most: the kernel keeps no more. */
    Set<String> threadNames();

    /** What a reader of the figures has to know, or null. */
    default String note() {
        return null;
    }

    /** Version of the peer, which the build writes into the manifest of its runner. */
    default String version() {
        return getClass().getPackage().getImplementationVersion();
    }
}
