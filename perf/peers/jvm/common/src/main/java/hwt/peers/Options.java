package hwt.peers;

/** What the command line asks for. */
record Options(
        Workload workload,
        int threads,
        int tickMs,
        int count,
        int pending,
        int seconds,
        int rounds,
        int warmup,
        long seed,
        boolean json) {

    /** The JIT compiler needs some rounds until it has settled. */
    private static final int WARMUP = 3;

    static Options parse(String[] args) throws UsageException {
        if (args.length == 0) {
            throw new UsageException("no workload: one of " + Workload.titles());
        }
        Workload workload = Workload.of(args[0]);
        int threads = 1;
        int tickMs = workload.tickMs;
        int count = workload.count;
        int pending = workload.pending;
        int seconds = workload.seconds;
        int rounds = 1;
        int warmup = WARMUP;
        long seed = 1;
        boolean json = false;

        for (int i = 1; i < args.length; i++) {
            String option = args[i];
            if (option.equals("--json")) {
                json = true;
                continue;
            }
            String value = i + 1 < args.length ? args[i + 1] : null;
            i++;
            switch (option) {
                case "--threads" -> threads = number(option, value, 1, 256);
                case "--tick-ms" -> tickMs = number(option, value, 1, 10_000);
                case "--count" -> count = number(option, value, 1, 1_000_000_000);
                case "--pending" -> pending = number(option, value, 1, 100_000_000);
                case "--seconds" -> seconds = number(option, value, 1, 600);
                case "--rounds" -> rounds = number(option, value, 1, 1_000);
                case "--warmup" -> warmup = number(option, value, 0, 1_000);
                case "--seed" -> seed = seed(option, value);
                default -> throw new UsageException("unknown option '" + option + "': one of --threads, --tick-ms, "
                        + "--count, --pending, --seconds, --rounds, --warmup, --seed, --json");
            }
        }
        // An option that the workload does not have changes nothing.
        threads = workload.threaded ? threads : 1;
        count = workload.count == 0 ? 0 : count;
        pending = workload.pending == 0 ? 0 : pending;
        seconds = workload.seconds == 0 ? 0 : seconds;
        if (workload == Workload.TOUCH && pending < threads) {
            throw new UsageException("--pending " + pending + ": " + threads + " (--threads) to 100000000 in touch");
        }
        return new Options(workload, threads, tickMs, count, pending, seconds, rounds, warmup, seed, json);
    }

    /** Thread {@code t}'s part of {@code total}: the first threads take what does not divide evenly. */
    int share(int total, int t) {
        return total / threads + (t < total % threads ? 1 : 0);
    }

    private static int number(String option, String value, int lo, int hi) throws UsageException {
        String range = "a whole number from " + lo + " to " + hi;
        if (value == null) {
            throw new UsageException(option + ": no value given, " + range);
        }
        // Digits alone: a sign is no part of any of these.
        if (value.matches("[0-9]{1,18}")) {
            long number = Long.parseLong(value);
            if (number >= lo && number <= hi) {
                return (int) number;
            }
        }
        throw new UsageException(option + " " + value + ": " + range);
    }

    private static long seed(String option, String value) throws UsageException {
        String range = "a whole number from 0 to 18446744073709551615";
        if (value == null) {
            throw new UsageException(option + ": no value given, " + range);
        }
        try {
            if (value.matches("[0-9]+")) {
                return Long.parseUnsignedLong(value);
            }
        } catch (NumberFormatException e) {
            // Too large: the same answer as for no number at all.
        }
        throw new UsageException(option + " " + value + ": " + range);
    }
}
