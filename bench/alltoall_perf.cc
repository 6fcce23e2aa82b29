#include "operation.h"

using namespace talaria::bench;

namespace {

constexpr Operation kAlltoAll = {
    .name = "AlltoAll",
    .program = "alltoall_perf",
    .reduces = false,
    .rooted = false,
    .in_place = false,
    .equal_outputs = false,
    .counts =
        [](uint64_t elements, int nranks) {
          const uint64_t share = elements / nranks;
          return Counts{share * nranks, share * nranks, share};
        },
    .input_offset = no_offset,
    .output_offset = no_offset,
    .expected =
        [](const Place& place) {
          const uint64_t share = place.counts.argument;
          std::vector<Segment> segments;
          for (int rank = 0; rank < place.nranks; ++rank) segments.push_back({rank, place.rank * share, share});
          return segments;
        },
    .bus_factor = [](int nranks) { return (nranks - 1.0) / nranks; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclAlltoAll(call.input, call.output, place.counts.argument, call.type, call.communicator,
                              call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kAlltoAll); }
