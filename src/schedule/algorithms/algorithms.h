// The algorithms of this folder, for the catalog.
#pragma once

#include "schedule/algorithm.h"

namespace talaria {

Algorithm one_shot_algorithm();  // everyone pushes everything to everyone, everyone reduces
Algorithm two_shot_algorithm();  // each rank reduces its own block, then gives the result to everyone
Algorithm ring_algorithm();      // blocks travel round the ring of ranks
Algorithm pairwise_algorithm();  // point-to-point, and all-to-all at growing distance

}  // namespace talaria
