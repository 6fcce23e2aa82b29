#include <cstring>

#include "schedule/algorithm.h"
#include "schedule/algorithms/algorithms.h"

namespace talaria {

std::span<const Algorithm> algorithm_catalog() {
  static const Algorithm catalog[] = {
      one_shot_algorithm(),
      two_shot_algorithm(),
      ring_algorithm(),
      pairwise_algorithm(),
  };
  return catalog;
}

const Algorithm* find_algorithm(const char* name) {
  for (const Algorithm& algorithm : algorithm_catalog()) {
    if (std::strcmp(algorithm.name, name) == 0) return &algorithm;
  }
  return nullptr;
}

}  // namespace talaria
