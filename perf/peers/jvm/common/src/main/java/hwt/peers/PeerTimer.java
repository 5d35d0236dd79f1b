package hwt.peers;

/** One started timer of a peer. */
public interface PeerTimer extends AutoCloseable {
    /** Schedules a timeout that runs {@code task} with {@code id}. Returns the peer's own handle. */
    Object schedule(long delayMicros, long id, Task task);

    /** Returns whether the cancel has won, so that the task never runs. */
    boolean cancel(Object handle);

    /** Puts a pending timeout off to {@code delayMicros} from now. Returns the handle to use from now on. */
    default Object touch(Object handle, long delayMicros, long id, Task task) {
        cancel(handle);
        return schedule(delayMicros, id, task);
    }

    @Override
    void close();
}
