package hwt.peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/** Threads that take each step together with the thread that measures them. */
final class Crew {
    /** What one thread does. Only {@link #work} is measured. */
    interface Member {
        default void fill() {
        }

        void work();

        default void drain() {
        }
    }

    private final CyclicBarrier barrier;
    private final List<Thread> threads = new ArrayList<>();

    /** Starts the threads, and returns when all have filled. */
    Crew(List<? extends Member> members) throws InterruptedException {
        barrier = new CyclicBarrier(members.size() + 1);
        for (Member member : members) {
            Thread thread = new Thread(() -> run(member), "producer");
            threads.add(thread);
            thread.start();
        }
        meet();
    }

    void work() throws InterruptedException {
        meet();
        meet();
    }

    void drain() throws InterruptedException {
        meet();
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void run(Member member) {
        try {
            member.fill();
            meet();
            meet();
            member.work();
            meet();
            meet();
            member.drain();
        } catch (Throwable e) {
            // Out of memory, mostly. The others would wait for this thread for ever.
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private void meet() throws InterruptedException {
        try {
            barrier.await();
        } catch (BrokenBarrierException e) {
            throw new IllegalStateException(e);
        }
    }
}
