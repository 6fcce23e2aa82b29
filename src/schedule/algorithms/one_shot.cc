// Direct one-shot: one flight of the wire. All-reduce: every rank pushes its whole input to every inbox and reduces
// what it receives in rank order, so all ranks compute the same bits. Reduce: everyone pushes to the root alone, which
// reduces in the same order. The busiest rank receives (n-1) times the data; for small messages.
#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

// There is no direct form: pulling from user buffers is wrong when only some ranks are in place.
bool serves(Operation operation, uint32_t, Form form) {
  return (operation == Operation::kAllReduce || operation == Operation::kReduce) && form == Form::kStaged;
}

// One stream: the push of a piece comes before its reduction, which may overwrite the input when in place.
Plan build(const Shape& shape) {
  Plan plan(shape, 1);
  plan.begin_stream();
  const uint32_t root = static_cast<uint32_t>(shape.root);
  if (shape.operation == Operation::kReduce && shape.rank != root) {
    plan.add(0, {own_input()}, {inbox(root, 0)});
    return plan;
  }
  std::vector<Ref> inboxes, gathered;
  for (uint32_t d = 1; d < shape.nranks; ++d) inboxes.push_back(inbox((shape.rank + d) % shape.nranks, 0));
  for (uint32_t p = 0; p < shape.nranks; ++p) {
    gathered.push_back(p == shape.rank ? own_input(kRaw) : inbox(p, 0, kRaw));
  }
  if (!inboxes.empty() && shape.operation == Operation::kAllReduce) plan.add(0, {own_input()}, inboxes);
  plan.add(0, gathered, {own_output()}, kFinal);
  return plan;
}

}  // namespace

Algorithm one_shot_algorithm() { return Algorithm{"one_shot", serves, build}; }

}  // namespace talaria
