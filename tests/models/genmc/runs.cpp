// Free runs (RunStack). The first thread pushes two runs, the second takes one, and the third pushes another and takes
// all. Each run comes to one thread, which sees it as it was pushed.

#include "hashed_wheel_timer/internal/memory/slab.h"
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::Page;
using hwt::internal::RunStack;

constinit Page pages[3]{};  // a run each
constinit RunStack runs;
int taken[3];  // the number of runs that each of the two threads and main() have taken

void push(int page) {
  pages[page].run_end = 1;
  runs.push(pages[page]);
}

/// Marks the runs of a chain as taken, and counts them.
int take(Page* run) {
  int count = 0;
  for (; run != nullptr; run = run->next) {
    MODEL_ASSERT(run->run_end == 1);
    run->run_end = 2;
    ++count;
  }
  return count;
}

void pusher() {
  push(0);
  push(1);
}
void take_one() { taken[0] = take(runs.take_one()); }
void take_all() {
  push(2);
  taken[1] = take(runs.take_all());
}

}  // namespace

int main() {
  model::run<pusher, take_one, take_all>();
  taken[2] = take(runs.take_all());
  MODEL_ASSERT(taken[0] + taken[1] + taken[2] == 3);
  return 0;
}
