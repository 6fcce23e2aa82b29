#include <cstring>

#include "schedule/algorithm.h"

namespace talaria {

// Each is defined in algorithms/<name>.cc. Declared here, not in a header: a new algorithm touches one file less.
Algorithm one_shot_algorithm();  // everyone pushes everything to everyone, or to the root; the receivers reduce
Algorithm two_shot_algorithm();  // each rank reduces its own block, then gives the result to everyone, or to the root
Algorithm ring_algorithm();      // blocks travel round the ring of ranks
Algorithm tree_algorithm();      // sums climb two binary trees, results come down
Algorithm pairwise_algorithm();  // point-to-point; all-to-all, gather and scatter at growing distance

std::span<const Algorithm> algorithm_catalog() {
  static const Algorithm catalog[] = {
      one_shot_algorithm(),
      two_shot_algorithm(),
      ring_algorithm(),
      tree_algorithm(),
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
