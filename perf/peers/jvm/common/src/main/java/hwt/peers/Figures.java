package hwt.peers;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** The fields of one answer in the order they are printed. */
final class Figures {
    private record Value(String json, String text) {
    }

    private final Map<String, Value> fields = new LinkedHashMap<>();

    Figures text(String name, String value) {
        return put(name, '"' + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"', value);
    }

    Figures number(String name, long value) {
        return put(name, Long.toString(value));
    }

    Figures unsigned(String name, long value) {
        return put(name, Long.toUnsignedString(value));
    }

    Figures number(String name, double value) {
        return put(name, decimal(value));
    }

    /** A 64-bit sum; as text, since not every reader of JSON keeps so many digits. */
    Figures sum(String name, long value) {
        return text(name, Long.toUnsignedString(value));
    }

    /** 1001 quantiles, of which a line for people shows some. */
    Figures quantiles(String name, double[] q) {
        String json = Arrays.stream(q).mapToObj(Figures::decimal).collect(Collectors.joining(", ", "[", "]"));
        String text = decimal(q[0]) + " least " + decimal(q[500]) + " median " + decimal(q[990]) + " 99% "
                + decimal(q[1000]) + " most";
        return put(name, json, text);
    }

    Figures add(Figures other) {
        fields.putAll(other.fields);
        return this;
    }

    String json() {
        return "{" + join(field -> '"' + field.getKey() + "\": " + field.getValue().json()) + "}";
    }

    /** One line for people. */
    String line() {
        return join(field -> field.getKey() + " " + field.getValue().text());
    }

    private String join(Function<Map.Entry<String, Value>, String> format) {
        return fields.entrySet().stream().map(format).collect(Collectors.joining(", "));
    }

    private Figures put(String name, String value) {
        return put(name, value, value);
    }

    private Figures put(String name, String json, String text) {
        fields.put(name, new Value(json, text));
        return this;
    }

    private static String decimal(double value) {
        return String.format(Locale.ROOT, "%.3f", value);
    }
}
