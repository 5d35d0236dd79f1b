package hwt.peers;

import java.io.IOException;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Runs a workload on a peer and prints its figures. */
public final class Runner {
    private static final int USAGE_ERROR = 2;

    private final Peer peer;
    private final Options options;

    private Runner(Peer peer, Options options) {
        this.peer = peer;
        this.options = options;
    }

    /** The whole of a runner's main. */
    public static void main(Peer peer, String[] args) throws InterruptedException, IOException {
        if (args.length == 1 && args[0].equals("--describe")) {
            System.out.println(description(peer).json());
            return;
        }
        Options options;
        try {
            options = Options.parse(args);
        } catch (UsageException e) {
            System.err.println(peer.name() + ": " + e.getMessage());
            System.exit(USAGE_ERROR);
            return;
        }
        new Runner(peer, options).run();
    }

    private void run() throws InterruptedException, IOException {
        for (int i = 0; i < options.warmup(); i++) {
            measure();
        }
        for (int round = 1; round <= options.rounds(); round++) {
            Figures figures = description(peer)
                    .text("workload", options.workload().title())
                    .number("threads", options.threads())
                    .number("tick_ms", options.tickMs())
                    .number("pending", options.pending())
                    .number("count", options.count())
                    .unsigned("seed", options.seed())
                    .number("round", round)
                    .add(measure());
            String note = notes();
            if (!note.isEmpty()) {
                figures.text("note", note);
            }
            System.out.println(options.json() ? figures.json() : figures.line());
        }
    }

    private String notes() {
        boolean wakeups = options.workload() == Workload.IDLE || options.workload() == Workload.FAR;
        return Stream.of(peer.note(), wakeups ? "wake-ups of the timer's own threads" : null)
                .filter(Objects::nonNull)
                .collect(Collectors.joining("; "));
    }

    private Figures measure() throws InterruptedException, IOException {
        return switch (options.workload()) {
            case CHURN -> Churn.measure(peer, options);
            case EXPIRE -> Expire.measure(peer, options);
            case MEMORY -> Memory.measure(peer, options);
            case IDLE -> Quiet.idle(peer, options);
            case FAR -> Quiet.far(peer, options);
            case LATE -> Late.measure(peer, options);
            case TOUCH -> Touch.measure(peer, options);
        };
    }

    private static Figures description(Peer peer) {
        // "OpenJDK 64-Bit Server VM": its first word names the product.
        String product = System.getProperty("java.vm.name").split(" ")[0];
        return new Figures()
                .text("runner", peer.name())
                .text("version", peer.version())
                .text("runtime", product + " " + System.getProperty("java.version"));
    }
}
