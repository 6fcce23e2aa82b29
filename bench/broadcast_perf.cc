#include "operation.h"

using namespace talaria::bench;

namespace {

constexpr Operation kBroadcast = {
    .name = "Broadcast",
    .program = "broadcast_perf",
    .reduces = false,
    .rooted = true,
    .in_place = true,
    .equal_outputs = true,
    .counts = [](uint64_t elements, int) { return Counts{elements, elements, elements}; },
    .input_offset = no_offset,
    .output_offset = no_offset,
    .expected = [](const Place& place) { return std::vector{Segment{place.root, 0, place.counts.receive}}; },
    .bus_factor = [](int) { return 1.0; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclBroadcast(call.input, call.output, place.counts.argument, call.type, place.root,
                               call.communicator, call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kBroadcast); }
