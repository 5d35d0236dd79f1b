# The step of the check that reads comments, docstrings and pages.

check_words() {
  need python3=python3 || return 1
  status=0
  python3 -B "$root/tests/words/words.py" "$root" || status=1
  need mvn=maven javac=default-jdk-headless || return 1 # the grammar checker needs JDK 17 or later
  # LanguageTool, from Maven Central.
  make_once words "$(cat "$root/tests/words/pom.xml")" quietly mvn --batch-mode --file "$root/tests/words/pom.xml" \
    dependency:copy-dependencies "-DoutputDirectory=$build/words/jars" || return 1
  say "reading with LanguageTool, which takes a minute"
  python3 -B "$root/tests/words/grammar.py" "$root" "$build/words/jars" || status=1
  return $status
}
