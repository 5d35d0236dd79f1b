// Free runs (RunStack). The first thread pushes two runs, the second takes one, and the third pushes another and takes
// all. Each run comes to one thread, which sees it as it was pushed.

#include "hashed_wheel_timer/internal/memory/slab.h"
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::Page;
using hwt::internal::RunStack;

constinit Page pages[3]{};
constinit RunStack runs;
int had[3];  // each thread's own

void push(int page) {
  pages[page].run_end = 1;
  runs.push(pages[page]);
}

int have(Page* run) {
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
void one() { had[0] = have(runs.take_one()); }
void all() {
  push(2);
  had[1] = have(runs.take_all());
}

}  // namespace

int main() {
  model::run<pusher, one, all>();
  had[2] = have(runs.take_all());
  MODEL_ASSERT(had[0] + had[1] + had[2] == 3);
  return 0;
}
