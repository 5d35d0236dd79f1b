// Where the hashed wheel keeps a tick, for every power of two of buckets up to 2^30, and every tick.

#include "hashed_wheel_timer/internal/wheel/revolutions.h"
#include "tests/arithmetic/bits.h"

namespace {

using namespace hwt::arithmetic;
using hwt::internal::kNever;
using hwt::internal::last_revolution;
using hwt::internal::next_tick;

using Tick = Bits<64, true>;
using Number = Bits<64, false>;
using Ring = hwt::internal::BasicRevolutions<Tick, Number, Number>;

constexpr std::int64_t kTags = 64;

Ring any_ring() { return Ring(std::int64_t{1} << each("bits", 0, 30)); }
Tick any_tick(const char* name) { return any<Tick>(name, 0, kNever - 1); }

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("ring_own_tick", [] {
    const Ring ring = any_ring();
    const Tick tick = any_tick("tick");
    const Number bucket = any<Number>("bucket", 0, ring.length() - 1);
    const Tick own = ring.own_tick(bucket, tick);
    require(own <= tick, "not after the tick");
    require(tick - own < ring.length(), "less than a revolution before");
    require(ring.bucket_of(own) == bucket, "in the bucket");
    require(ring.own_tick(ring.bucket_of(tick), tick) == tick, "own_tick() of a tick's own bucket is the tick");
  });
  proof.lemma("ring_found_again", [] {
    const Ring ring = any_ring();
    const Tick now = any_tick("now");
    const Tick tick = any_tick("tick");
    assume(tick >= now);
    const Number address("address");
    const Number bucket = ring.bucket_of(tick);
    require(bucket < Number(ring.length()), "its bucket exists");
    const Tick own = ring.own_tick(bucket, now);
    const Number distance = Number(tick) - Number(own);
    const Number ahead = Ring::ahead((address << 6) | ring.tag_of(tick), ring.tag_of(own));
    const Tick next = ring.later(own, ahead);
    require(next <= tick, "never late: the bucket is due at its tick or before");
    require(implies(ahead == 0, (distance & (ring.length() * kTags - 1)) == 0),
            "with equal tags, the distance is a multiple of 64 revolutions");
    require(implies(ahead != 0, next > now), "with different tags, the guess is after now");
    require(implies(distance < ring.length() * kTags, next == tick), "exact within 64 revolutions");
  });
  proof.lemma("ring_last_revolution", [] {
    const Ring ring = any_ring();
    const Tick tick = any_tick("tick");
    const Tick last = last_revolution(tick, ring.length());
    require(last >= tick, "not before the tick");
    require(last < kNever, "a tick");
    require(kNever - 1 - last < ring.length(), "in the last revolution");
    require(ring.bucket_of(last) == ring.bucket_of(tick), "in the same bucket");
  });
  proof.lemma("ring_next_tick", [] {
    const Tick tick = any_tick("tick");
    const Tick next = next_tick(tick);
    require(next < kNever, "a tick");
    if (tick < kNever - 1) {
      require(next == tick + 1, "one more");
    } else {
      require(next == tick, "the latest one stays");
    }
  });
  return proof.result();
}
