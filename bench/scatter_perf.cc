#include "operation.h"

using namespace talaria::bench;

namespace {

uint64_t own_share(const Place& place) { return place.rank * place.counts.receive; }

constexpr Operation kScatter = {
    .name = "Scatter",
    .program = "scatter_perf",
    .reduces = false,
    .rooted = true,
    .in_place = true,
    .equal_outputs = false,
    .counts =
        [](uint64_t elements, int nranks) {
          const uint64_t share = elements / nranks;
          return Counts{share * nranks, share, share};
        },
    .input_offset = no_offset,
    .output_offset = own_share,
    .expected =
        [](const Place& place) {
          return std::vector{Segment{place.root, own_share(place), place.counts.receive}};
        },
    .bus_factor = [](int nranks) { return (nranks - 1.0) / nranks; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclScatter(call.input, call.output, place.counts.argument, call.type, place.root, call.communicator,
                             call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kScatter); }
