package hwt.peers;

import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.dubbo.common.timer.HashedWheelTimer;
import org.apache.dubbo.common.timer.Timeout;

record DubboTimer(HashedWheelTimer timer) implements Peer.Timer {
    private static final String THREAD = "timer-worker";

    static Peer peer() {
        // Prevents the search for a logger. slf4j-nop prints nothing.
        System.setProperty("dubbo.application.logger", "slf4j");
        return new Peer(HashedWheelTimer.class, Set.of(THREAD), "", DubboTimer::start);
    }

    private static DubboTimer start(int tickMs) {
        HashedWheelTimer timer =
                new HashedWheelTimer(run -> new Thread(run, THREAD), tickMs, TimeUnit.MILLISECONDS, Peer.BUCKETS);
        timer.start();
        return new DubboTimer(timer);
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
