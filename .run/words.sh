# The step of the check that reads comments, docstrings and pages.

check_words() {
  need python3=python3
  status=0
  python3 -B "$root/tests/words/words.py" "$root" || status=1
  need mvn=maven javac=default-jdk-headless
  have mvn && have javac || fail "the grammar checker needs Maven and a JDK, 17 or later"
  make_once words "$(cat "$root/tests/words/pom.xml")" install_grammar || return 1
  say "reading with LanguageTool, which takes a minute"
  python3 -B "$root/tests/words/grammar.py" "$root" "$build/words/jars" || status=1
  return $status
}

# Installs LanguageTool in build/words.
install_grammar() {
  say "installing from Maven Central into build/words: LanguageTool"
  quietly mvn --batch-mode --file "$root/tests/words/pom.xml" dependency:copy-dependencies \
    "-DoutputDirectory=$build/words/jars"
}
