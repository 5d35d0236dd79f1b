# The step of the check that reads comments, docstrings and pages.

check_words() {
  need python3=python3
  status=0
  python3 -B "$root/tests/words/words.py" "$root" || status=1
  set_up_grammar || return 1
  say "reading with LanguageTool, which takes a minute"
  python3 -B "$root/tests/words/grammar.py" "$root" "$build/words/jars" || status=1
  return $status
}

# Installs LanguageTool in build/words, in the version of tests/words/pom.xml.
set_up_grammar() {
  need mvn=maven javac=default-jdk-headless
  have mvn && have javac || fail "the grammar checker needs Maven and a JDK, 17 or later"
  pom=$root/tests/words/pom.xml folder=$build/words
  ! cmp -s "$pom" "$folder/stamp" || return 0
  say "installing from Maven Central into ${folder#"$root/"}: LanguageTool"
  rm -rf "$folder"
  mkdir -p "$folder"
  quietly mvn --batch-mode --file "$pom" dependency:copy-dependencies "-DoutputDirectory=$folder/jars" ||
    { say "could not install LanguageTool, see build/last.log"; return 1; }
  cp "$pom" "$folder/stamp"
}
