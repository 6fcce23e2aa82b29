#include "operation.h"

using namespace talaria::bench;

namespace {

constexpr Operation kReduce = {
    .name = "Reduce",
    .program = "reduce_perf",
    .reduces = true,
    .rooted = true,
    .in_place = true,
    .equal_outputs = false,
    .counts = [](uint64_t elements, int) { return Counts{elements, elements, elements}; },
    .input_offset = no_offset,
    .output_offset = no_offset,
    .expected =
        [](const Place& place) {
          if (place.rank != place.root) return std::vector<Segment>{};
          return std::vector{Segment{Segment::kAllRanks, 0, place.counts.receive}};
        },
    .bus_factor = [](int) { return 1.0; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclReduce(call.input, call.output, place.counts.argument, call.type, call.reduction, place.root,
                            call.communicator, call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kReduce); }
