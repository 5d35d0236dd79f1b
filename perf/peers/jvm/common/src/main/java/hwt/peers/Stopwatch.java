package hwt.peers;

/** Wall and CPU time of a run of operations. */
final class Stopwatch {
    /** The worker catches up in this time and two ticks. */
    private static final long REST_MS = 50;

    private final long cpuStart = Cpu.nanos();
    private final long wallStart = System.nanoTime();
    private long wall;
    private long cpu;

    /** The last operation has ended: the wall time is complete, the CPU time after the worker's rest. */
    void stop(int tickMs) throws InterruptedException {
        wall = System.nanoTime() - wallStart;
        Thread.sleep(2L * tickMs + REST_MS);
        cpu = Cpu.nanos() - cpuStart;
    }

    Figures figures(long operations) {
        return new Figures()
                .number("operations", operations)
                .number("cpu_ns_per_op", (double) cpu / operations)
                .number("wall_ns_per_op", (double) wall / operations)
                .number("wall_ms", wall / 1e6);
    }
}
