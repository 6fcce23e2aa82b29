// Succeeds when the catalog finds the algorithm named on the command line and its plans can be built and sealed.
#include <fmt/core.h>

#include "schedule/algorithm.h"

int main(int argc, char** argv) {
  const talaria::Algorithm* algorithm = argc == 2 ? talaria::find_algorithm(argv[1]) : nullptr;
  if (algorithm == nullptr) {
    fmt::print("the catalog does not find {}\n", argc == 2 ? argv[1] : "(no name given)");
    return 1;
  }
  int plans = 0;
  for (int operation = 0; operation < talaria::kOperations; ++operation) {
    for (uint32_t rank = 0; rank < 5; ++rank) {
      const talaria::Shape shape{static_cast<talaria::Operation>(operation), 1, rank, 5, talaria::Form::kStaged};
      if (!algorithm->serves(shape.operation, shape.nranks, shape.form)) continue;
      talaria::Plan plan = algorithm->build(shape);
      if (!plan.seal().ok() || plan.steps().empty()) return 1;
      ++plans;
    }
  }
  fmt::print("{}: {} plans\n", algorithm->name, plans);
  return plans > 0 ? 0 : 1;
}
