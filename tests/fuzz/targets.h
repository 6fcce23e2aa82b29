// Fuzz targets: what reads bytes or texts that others wrote. Each takes any input and must return: no crash, no hang,
// no leak. The same table serves libFuzzer and the driver that mutates seeds by itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace talaria::test {

using Bytes = std::vector<uint8_t>;

struct FuzzTarget {
  const char* name;
  void (*run)(std::span<const uint8_t> input);
  std::vector<Bytes> (*seeds)();  // inputs that get far
  uint32_t weight;                // share of the driver's inputs
};

std::span<const FuzzTarget> text_targets();
std::span<const FuzzTarget> socket_targets();

// Ends threads that targets keep between inputs.
void end_socket_targets();

}  // namespace talaria::test
