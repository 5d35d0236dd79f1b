package hwt.peers;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.Set;
import java.util.concurrent.TimeUnit;

record NettyTimer(HashedWheelTimer timer) implements Peer.Timer {
    private static final String THREAD = "timer-worker";

    static Peer peer() {
        return new Peer(HashedWheelTimer.class, Set.of(THREAD), "", NettyTimer::start);
    }

    private static NettyTimer start(int tickMs) {
        // Without leak detection, which is a tool for debugging.
        HashedWheelTimer timer = new HashedWheelTimer(
                run -> new Thread(run, THREAD), tickMs, TimeUnit.MILLISECONDS, Peer.BUCKETS, false);
        timer.start();
        return new NettyTimer(timer);
    }

    @Override
    public Object schedule(long delayMicros, long id, Peer.Task task) {
        return timer.newTimeout(timeout -> task.run(id), delayMicros, TimeUnit.MICROSECONDS);
    }

    @Override
    public boolean cancel(Object handle) {
        return ((Timeout) handle).cancel();
    }

    @Override
    public void close() {
        timer.stop();
    }
}
