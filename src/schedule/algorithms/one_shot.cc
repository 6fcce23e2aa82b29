// Direct one-shot all-reduce: one flight of the wire. Every rank pushes its whole input to every inbox and reduces what
// it receives in rank order, so all ranks compute the same bits. Moves (n-1) times the data; for small messages.
#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

// There is no direct form: pulling from user buffers is wrong when only some ranks are in place.
bool serves(Operation operation, uint32_t, Form form) {
  return operation == Operation::kAllReduce && form == Form::kStaged;
}

// One stream: the push of a piece comes before its reduction, which may overwrite the input when in place.
Plan build(const Shape& shape) {
  Plan plan(shape, 1);
  plan.begin_stream();
  std::vector<Ref> inboxes, gathered;
  for (uint32_t d = 1; d < shape.nranks; ++d) inboxes.push_back(inbox((shape.rank + d) % shape.nranks, 0));
  for (uint32_t p = 0; p < shape.nranks; ++p) {
    gathered.push_back(p == shape.rank ? own_input(kRaw) : inbox(p, 0, kRaw));
  }
  if (!inboxes.empty()) plan.add(0, {own_input()}, inboxes);
  plan.add(0, gathered, {own_output()}, kFinal);
  return plan;
}

}  // namespace

Algorithm one_shot_algorithm() { return Algorithm{"one_shot", serves, build}; }

}  // namespace talaria
