// The word of a node, for every word: its fields, its generations, and their end.

#include "hashed_wheel_timer/internal/memory/node_word.h"
#include "tests/arithmetic/bits.h"

namespace {

using namespace hwt::arithmetic;
using hwt::detail::TaskKind;
using hwt::internal::NodeState;

using Word = Bits<64, false>;
using Half = Bits<32, false>;
using NodeWord = hwt::internal::BasicNodeWord<Word, Half>;

/// A generation with which a life may begin.
Half any_life() {
  const Half life = any<Half>("life", NodeWord::kFirstGeneration, NodeWord::kLastGeneration);
  assume((life & 1) == 0);
  return life;
}
TaskKind any_kind() { return static_cast<TaskKind>(each("kind", 0, 3)); }
Word references(const Word& word) { return (word & NodeWord::kReferences) / NodeWord::kReference; }
/// The bits of the word outside the fields that a transition changes.
Word flags(const Word& word) {
  return word & (NodeWord::kHandedOver | NodeWord::kAwaited | NodeWord::kMoved | NodeWord::kNamed);
}

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("generation_published", [] {
    const Half life = any_life();
    const TaskKind kind = any_kind();
    const bool named = each("named", 0, 1) != 0;
    const Word word = NodeWord::published(NodeWord::free_word(life), kind, named);
    require(NodeWord::generation_of(word) == life, "the entry names this life");
    require(references(word) == (named ? 1 : 2), "the timer and the handle have a reference");
    require(NodeWord::state_of(word) == NodeState::Queued, "it is queued");
    require(NodeWord::kind_of(word) == kind, "it has the kind");
    require(flags(word) == (named ? NodeWord::kNamed : 0), "it has no other flag");
    require((word & (NodeWord::kRecheckQueued | NodeWord::kBusy)) == 0, "no request is queued, and no thread is busy");
  });
  proof.lemma("generation_next_life", [] {
    // Of the life itself, or of one that was withdrawn.
    const Half life = any_life();
    const Half last = life + each("withdrawn", 0, 1);
    const Half next = NodeWord::next_life(last);
    require(next > last, "no generation comes again: it rises, and does not wrap");
    require((next & 1) == 0, "an even one");
    require(next != 0, "not that of memory which went back");
    require(implies(next <= NodeWord::kLastGeneration, next + 1 > next), "its withdrawal does not wrap");
    require(NodeWord::usable(next) == (next <= NodeWord::kLastGeneration), "the last one is known");
    const bool withdrawable = NodeWord::has_next(life);
    const bool usable = NodeWord::usable(NodeWord::next_life(life));
    require(withdrawable == usable, "a life is withdrawn only if there is a next one");
    if (withdrawable) require(NodeWord::next_life(life) == life + 2, "which is two more");
  });
  // Fresh nodes begin with the highest generation that was seen in their memory.
  proof.lemma("generation_of_reused_memory", [] {
    const Half seen("seen");
    assume(seen >= NodeWord::kFirstGeneration);
    if (!NodeWord::usable(seen)) return;
    require(NodeWord::generation_of(NodeWord::free_word(seen)) == seen, "a fresh node has it");
    require(NodeWord::state_of(NodeWord::free_word(seen)) == NodeState::Cancelled, "a fresh node is free");
    require(references(NodeWord::free_word(seen)) == 0, "without references");
  });
  proof.lemma("generation_withdrawn", [] {
    const Word word("word");
    assume(references(word) >= 1);
    const Half life = NodeWord::generation_of(word);
    assume(life <= NodeWord::kLastGeneration);
    const Word left = NodeWord::withdrawn(word);
    require(NodeWord::generation_of(left) == life + 1, "the entry of the inbox is an old one");
    require(references(left) == references(word) - 1, "the timer's reference is gone");
    require((left & (NodeWord::kReference - 1)) == (word & (NodeWord::kReference - 1)), "all else stays");
  });
  proof.lemma("generation_cancelled", [] {
    const Word word("word");
    const bool own = each("own", 0, 1) != 0;
    const bool asks = each("asks", 0, 1) != 0;
    assume(NodeWord::pending(word));
    assume(references(word) >= 1);
    if (NodeWord::too_many_references(word)) return;
    assume(NodeWord::generation_of(word) <= NodeWord::kLastGeneration);
    const NodeState state = NodeWord::state_of(word);
    const TaskKind kind = NodeWord::kind_of(word);
    assume((word & NodeWord::kBusy) == 0);
    const Word left = NodeWord::cancelled(word, own, asks);
    const bool withdrawn = own && state == NodeState::Queued && kind != TaskKind::Shared;
    const bool callable = kind == TaskKind::Callable;
    require(NodeWord::state_of(left) == NodeState::Cancelled, "it is cancelled");
    require(NodeWord::generation_of(left) == NodeWord::generation_of(word) + (withdrawn ? 1 : 0),
            "the generation rises only if it was withdrawn: no reference is carried into it");
    require(references(left) == references(word) + (callable ? 1 : 0) - (withdrawn ? 1 : 0),
            "the caller has a callable's reference");
    require((left & NodeWord::kRecheckQueued) ==
                (asks ? Word(NodeWord::kRecheckQueued) : (word & NodeWord::kRecheckQueued)),
            "a recheck request is queued if the caller enqueues one, or another thread has");
    require(flags(left) == flags(word), "all else stays");
  });
  // Threads that add a reference at once, each after a look: as many as 2^20.
  proof.lemma("generation_references", [] {
    const Word word("word");
    const Word threads = any<Word>("threads", 1, 1 << 20);
    if (NodeWord::too_many_references(word)) return;
    const Word left = word + threads * NodeWord::kReference;
    require(NodeWord::generation_of(left) == NodeWord::generation_of(word), "no reference is carried into it");
  });
  return proof.result();
}
