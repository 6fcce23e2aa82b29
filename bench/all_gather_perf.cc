#include "operation.h"

using namespace talaria::bench;

namespace {

constexpr Operation kAllGather = {
    .name = "AllGather",
    .program = "all_gather_perf",
    .reduces = false,
    .rooted = false,
    .in_place = true,
    .equal_outputs = true,
    .counts =
        [](uint64_t elements, int nranks) {
          const uint64_t share = elements / nranks;
          return Counts{share, share * nranks, share};
        },
    .input_offset = [](const Place& place) { return place.rank * place.counts.send; },
    .output_offset = no_offset,
    .expected =
        [](const Place& place) {
          std::vector<Segment> segments;
          for (int rank = 0; rank < place.nranks; ++rank) segments.push_back({rank, 0, place.counts.send});
          return segments;
        },
    .bus_factor = [](int nranks) { return (nranks - 1.0) / nranks; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclAllGather(call.input, call.output, place.counts.argument, call.type, call.communicator,
                               call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kAllGather); }
