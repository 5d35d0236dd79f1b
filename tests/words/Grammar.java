import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import org.languagetool.JLanguageTool;
import org.languagetool.Languages;
import org.languagetool.rules.Rule;
import org.languagetool.rules.RuleMatch;

/**
 * Reads sentences, one a line, and prints for each error the number of the line, the rule, the words and a message,
 * separated by tabs. grammar.py calls it.
 */
class Grammar {
    /** Categories of LanguageTool that find errors. The others are about style, typography and spelling. */
    private static final Set<String> CATEGORIES = Set.of("GRAMMAR", "MISC", "CONFUSED_WORDS", "TYPOS");

    public static void main(String[] withoutRules) throws Exception {
        Set<String> disabled = Set.of(withoutRules);
        JLanguageTool tool = new JLanguageTool(Languages.getLanguageForShortCode("en-US"));
        for (Rule rule : tool.getAllActiveRules()) {
            if (!CATEGORIES.contains(rule.getCategory().getId().toString()) || disabled.contains(rule.getId())
                    || rule.isDictionaryBasedSpellingRule()) {
                tool.disableRule(rule.getId());
            }
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String sentence;
        for (int number = 0; (sentence = input.readLine()) != null; ++number) {
            for (RuleMatch match : tool.check(sentence)) {
                System.out.println(number + "\t" + match.getRule().getId() + "\t"
                        + sentence.substring(match.getFromPos(), match.getToPos()) + "\t"
                        + match.getMessage().replaceAll("\\s+", " ").replaceAll("</?suggestion>", "'"));
            }
        }
    }
}
