#include "operation.h"

using namespace talaria::bench;

namespace {

constexpr Operation kAllReduce = {
    .name = "AllReduce",
    .program = "all_reduce_perf",
    .reduces = true,
    .rooted = false,
    .in_place = true,
    .equal_outputs = true,
    .counts = [](uint64_t elements, int) { return Counts{elements, elements, elements}; },
    .input_offset = no_offset,
    .output_offset = no_offset,
    .expected = [](const Place& place) { return std::vector{Segment{Segment::kAllRanks, 0, place.counts.receive}}; },
    .bus_factor = [](int nranks) { return 2.0 * (nranks - 1) / nranks; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclAllReduce(call.input, call.output, place.counts.argument, call.type, call.reduction,
                               call.communicator, call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kAllReduce); }
