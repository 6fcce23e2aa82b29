// What users write: variables and configuration files.
#include <algorithm>
#include <string>

#include "base/config_file.h"
#include "bootstrap/address.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/port_range.h"
#include "fuzz/targets.h"
#include "schedule/selection_filter.h"

namespace talaria::test {
namespace {

std::string text_of(std::span<const uint8_t> input) { return {input.begin(), input.end()}; }

// Two texts in one input, apart at the first zero.
std::pair<std::string, std::string> halves_of(std::span<const uint8_t> input) {
  const auto cut = std::ranges::find(input, 0);
  return {std::string(input.begin(), cut), cut == input.end() ? "" : std::string(cut + 1, input.end())};
}

std::vector<Bytes> texts(std::initializer_list<std::string> all) {
  std::vector<Bytes> seeds;
  for (const std::string& text : all) seeds.emplace_back(text.begin(), text.end());
  return seeds;
}

void port_range(std::span<const uint8_t> input) {
  Result<PortRange> range = parse_port_range(text_of(input));
  if (range.ok() && (range->first == 0 || range->last < range->first)) __builtin_trap();
}

void endpoint(std::span<const uint8_t> input) {
  Result<Endpoint> parts = split_endpoint(text_of(input));
  if (parts.ok() && (parts->host.empty() || parts->port == 0)) __builtin_trap();
}

void interface_filter(std::span<const uint8_t> input) {
  const auto [name, pattern] = halves_of(input);
  (void)passes_filter(name, pattern);
}

void selection(std::span<const uint8_t> input) {
  const auto [algorithms, protocols] = halves_of(input);
  (void)parse_selection(algorithms, protocols).ok();
}

void config_file(std::span<const uint8_t> input) {
  ConfigFiles files;
  parse_config_text("/etc/nccl.conf", text_of(input), files);
}

const FuzzTarget kTargets[] = {
    {"port_range", port_range, [] { return texts({"5000-5100", "1", "65535-65535"}); }, 12},
    {"endpoint", endpoint, [] { return texts({"127.0.0.1:23456", "[::1]:5", "[fe80::1%eth0]:65535", "host:1"}); }, 12},
    {"interface_filter", interface_filter,
     [] { return texts({std::string("eth0\0^eth,ib", 12), std::string("ib0\0=ib0", 8), std::string("lo\0", 3)}); }, 12},
    {"selection", selection,
     [] {
       return texts({"ring,tree", "^NVLS,NVLSTree", "allreduce:tree,ring;allgather:ring",
                     std::string("allreduce:ring\0^LL;broadcast:Simple", 35)});
     },
     12},
    {"config_file", config_file,
     [] { return texts({"# comment\nNCCL_DEBUG=INFO\n\nNCCL_ALGO = ring\n", "NCCL_X=\n=\nA=B=C\n"}); }, 12},
};

}  // namespace

std::span<const FuzzTarget> text_targets() { return kTargets; }

}  // namespace talaria::test
