package hwt.peers;

import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.TypeConversionException;

/** The command line. */
record Options(int threads, int tickMs, int count, int pending, int seconds, int dueMs, int warmup, long seed, boolean inTurn) {
    static Options parse(String... args) throws ParameterException {
        CommandSpec spec = CommandSpec.create();
        number(spec, "--threads", 1, 1, 256);
        number(spec, "--tick-ms", 1, 1, 10_000);
        number(spec, "--count", 1_000_000, 1, 1_000_000_000);
        number(spec, "--pending", 1_000, 1, 100_000_000);
        number(spec, "--seconds", 2, 1, 600);
        number(spec, "--due-ms", 0, 0, 1_000);
        number(spec, "--warmup", 0, 0, 1_000);
        number(spec, "--seed", 1, 0, Long.MAX_VALUE);
        spec.addOption(OptionSpec.builder("--in-turn").type(boolean.class).build());
        CommandLine line = new CommandLine(spec);
        ParseResult given = line.parseArgs(args);
        return new Options(whole(given, "--threads"), whole(given, "--tick-ms"), whole(given, "--count"),
                whole(given, "--pending"), whole(given, "--seconds"), whole(given, "--due-ms"),
                whole(given, "--warmup"), value(given, "--seed"), given.hasMatchedOption("--in-turn"));
    }

    private static void number(CommandSpec spec, String name, long preset, long low, long high) {
        spec.addOption(OptionSpec.builder(name).type(Long.class).initialValue(preset).converters(text -> {
            if (text.matches("\\d{1,19}") && Long.parseUnsignedLong(text) >= low && Long.parseUnsignedLong(text) <= high) {
                return Long.parseLong(text);
            }
            throw new TypeConversionException("'" + text + "' is not a whole number from " + low + " to " + high);
        }).build());
    }

    private static long value(ParseResult given, String name) {
        return given.commandSpec().findOption(name).getValue();
    }

    private static int whole(ParseResult given, String name) {
        return (int) value(given, name);
    }

    /** The options in the JSON object. */
    Map<String, Object> fields() {
        return Map.of("threads", threads, "tick_ms", tickMs, "count", count, "pending", pending, "seed", seed);
    }

    /** Thread {@code t}'s share of {@code total}. If it does not divide evenly, the first threads take one more. */
    int share(int total, int t) {
        return total / threads + (t < total % threads ? 1 : 0);
    }
}
